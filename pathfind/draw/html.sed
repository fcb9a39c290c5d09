# Makes a C string of html.css, without its comments.
1i #include "draw/html.h"\n\nconst char tccl_html_style[] =
/^\/\*.*\*\/$/d
s/[\\"]/\\&/g
s/^ *\(.*\)$/    "\1\\n"/
$a ;
