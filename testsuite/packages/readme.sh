# readme.sh: what README.md tells an administrator to do, taken from its text.
readonly readme=$root/README.md

# The text of a step of "In production", from its heading, "**2. Load it.**", to the next one.
readme_step() { # HEADING
    awk -v heading="**$1**" 'index($0, heading) == 1 { on = 1; print; next } on && /^(\*\*|## )/ { exit } on' "$readme" | grep . ||
        fail "README.md has no step \"$1\""
}

# The indented lines of a step that come after its first line that has this text, as far as they go.
readme_lines() { # HEADING TEXT
    local lines
    lines=$(readme_step "$1" | awk -v text="$2" '!on && index($0, text) { on = 1; next } on == 1 && /^    / { on = 2 }
        on == 2 && /^ *$/ { next } on == 2 && !/^    / { exit } on == 2 { print substr($0, 5) }')
    [ -n "$lines" ] || fail "README.md, \"$1\": no lines after \"$2\""
    echo "$lines"
}

# A row of the table of roles, without its role: packages, what runs, where it listens, one a line.
readme_role() { # ROLE
    local row
    row=$(readme_step "1. Install." | awk -F ' *\\| *' -v role="$1" '$2 == role { print $3; print $4; print $5 }')
    [ -n "$row" ] || fail "README.md has no role \"$1\""
    echo "$row"
}

readme_roles() {
    readme_step "1. Install." | awk -F ' *\\| *' '/^\|/ && $2 !~ /^(role|-+)$/ { print $2 }'
}

# What stands in backticks.
quoted() {
    grep -o '`[^`]*`' | tr -d '`'
}

# The first lines of an indented block anywhere, from one that begins so.
readme_block() { # BEGINNING
    awk -v text="$1" '!on && index($0, text) == 1 { on = 1 } on && !/^    / { exit } on { print substr($0, 5) }' "$readme" | grep . ||
        fail "README.md has no lines \"$1\""
}
