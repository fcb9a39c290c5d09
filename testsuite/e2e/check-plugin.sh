#!/bin/bash
# What can be wrong with the plugin, each told apart by tccl-check: no plugstack.conf, no line in it, a line
# in an included file, required, written twice; no such file, another Slurm's; slurmd older
# than plugstack.conf. All else stays ok.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

stack=$cluster/plugstack.conf
plugin=$cluster/build/spank/spank_tccl.so
line="config=$cluster/tccl.conf"
cp -a "$stack" "$work/stack"
at_end+=("cp -a $work/stack $stack")

# Written with the old time: slurmd does not look older than it. What other nodes' tccld say of their plugin
# is up to 10 s old: e2e/require-no-plugin.
write() { # LINE...
    printf '%s\n' "$@" >"$stack"
    touch -r "$work/stack" "$stack"
    check n1 --no-peers
}
judged() { # STATUS ITEM...: that may not be ok
    equal "exit status" "$status" "$1"
    shift
    others_ok "$@"
}

write '# nothing'
judged 1 plugstack plugin loaded
item plugstack fail "*plugstack.conf has no line for spank_tccl.so: add the line \"optional spank_tccl.so\""
item loaded fail '*does not show --tccl*'

rm "$stack"
check n1 --no-peers
judged 1 plugstack plugin loaded
item plugstack fail "*plugstack.conf is not there: add the line*"

mkdir -p "$work/stack.d"
echo "optional $plugin $line" >"$work/stack.d/10-tccl.conf"
touch -r "$work/stack" "$work/stack.d/10-tccl.conf"
write "include $work/stack.d/*.conf"
judged 0
item plugstack ok "*stack.d/10-tccl.conf:1: optional*"
chmod 600 "$work/stack.d/10-tccl.conf"
user tccl-check --node n1 --timeout 60 --only plugstack >"$work/check" || true
item plugstack fail '*10-tccl.conf can*t be read by this user*'

write "required $plugin $line"
judged 0 plugstack
item plugstack warn '*required*write optional'

write "optional $plugin $line" "optional $plugin $line"
judged 0 plugstack
item plugstack warn '*2 times*'

write "optional $plugin $line" "sometimes other.so"
judged 0 plugstack
item plugstack warn 'line 2 of plugstack.conf is ignored*'

write "Optional $plugin $line"
judged 1 plugstack plugin loaded
item plugstack fail '*has no line for spank_tccl.so*line 1 of plugstack.conf is ignored*'

# Without config=, the plugin has the built-in values; arguments count as the file does.
write "optional $plugin"
judged 0 config
item config warn 'the plugin reads */slurm/tccl.conf, which is not there*name one file for all'
write "optional $plugin $line Default=auto"
judged 0
item policy ok 'steps of all partitions have mode auto*'
write "optional $plugin $line Default=auto Forbid=yes"
item policy ok 'steps have no ring, whatever they ask for*'

write "optional $work/spank_tccl.so $line"
judged 1 plugin loaded
item plugin fail "$work/spank_tccl.so: No such file*: install it*"

write "optional spank_tccl.so $line"
judged 1 plugin loaded
item plugin fail 'no spank_tccl.so in PluginDir=/*'

# A plugin of another Slurm is refused by srun, which says so.
cat >"$work/other.c" <<'C'
const char plugin_name[] = "tccl", plugin_type[] = "spank";
const unsigned int plugin_version = VERSION, spank_plugin_version = 1;
int slurm_spank_init(void *spank, int argc, char **argv);
int slurm_spank_init(void *spank, int argc, char **argv) { (void)spank, (void)argc, (void)argv; return 0; }
C
gcc -shared -fPIC -DVERSION=0x1f0b03 -o "$work/spank_tccl.so" "$work/other.c"
write "optional $work/spank_tccl.so $line"
judged 1 loaded
item loaded fail '*does not show --tccl: it says: *'

cp -a "$work/stack" "$stack"
touch -d '+1 hour' "$stack"
check n1 --no-peers
judged 0 loaded
item loaded warn '*plugstack.conf has changed since slurmd (pid *) was started: restart slurmd'

cp -a "$work/stack" "$stack"
check n1 --no-peers
judged 0
