"""html-js.py FILE: prints html.js as a C string, with the hash by which the page's policy allows it and no other."""
import base64
import hashlib
import json
import sys

script = "\n" + open(sys.argv[1], encoding="utf-8").read().split("*/\n", 1)[1]
assert not set("<&") & set(script) and "]]>" not in script
digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
print('#include "draw/html.h"\n\nconst char tccl_html_script[] =')
for line in script.splitlines(keepends=True):
    print("    " + json.dumps(line, ensure_ascii=False))
print(f';\nconst char tccl_html_script_hash[] = "sha256-{digest}";')
