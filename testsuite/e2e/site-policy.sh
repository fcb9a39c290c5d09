#!/bin/bash
# [policy NAME]: steps get a ring without any flag, by srun, sbatch (its script and the steps in it) and
# salloc; the first rule that matches holds. Forbid stands above --tccl and TCCL=, MinGain in every
# mode, MaxRings leaves other jobs their several rings; Environment reaches tasks with a ring, TrafficClass those of several nodes, over nothing that the user has set.
# cluster: mixed
# level: all
. "$(dirname "$0")/lib.sh"

cp "$cluster/tccl.conf" "$cluster/tccl.conf.before"
at_end+=("mv $cluster/tccl.conf.before $cluster/tccl.conf")
sed -i 's/LD_PRELOAD)=/LD_PRELOAD|TCCL_ENVIRONMENT|SITE_[A-Z]|NCCL_IB_[A-Z]*)=/' "$work/show"
cat >>"$cluster/tccl.conf" <<CONF
[policy]
Environment=SITE_A=site
[policy no]
Partitions=oth*,none
Users=root,nob?dy
Forbid=yes
TrafficClass=7
[policy gain]
JobNames=gain *,more
MinGain=50x
Default=on
TrafficClass=/5
[policy short]
JobNames=short
Default=on
Timeout=4701ms
RequireTimeout=6902ms
[policy one]
JobNames=one
MaxRings=1
Default=on
[policy two]
NodeList=n[1-2]
Nodes=2-
Gpus=8
Default=on
TrafficClass=106/3
Environment=SITE_A=two=2
Environment=SITE_B=two words
[policy four]
NodeList=n1
Gpus=4-
GpuTypes=a100,tesla_v100
Default=auto
[policy never]
GpuTypes=h100
Default=require
CONF
four="--gpus-per-node=4 --ntasks-per-node=1"

# Without a flag.
srun_show -w n1,n2 -N2 $four
has_ring 2
says "tccl: *ring* of 2 nodes, 8 GPUs: *"
all_have SITE_A two=2
all_have SITE_B "two words"
all_have NCCL_IB_TC 106
all_have NCCL_IB_SL 3
recorded "$(job_of)" 0 policy two
recorded "$(job_of)" 0 mode on
recorded "$(job_of)" 0 traffic_class 106/3
as_solved 0 n{1..2}:0-3
several=$(values TCCL_RING)
case $several in *"|"*) ;; *) fail "a single ring, though several are faster: $several" ;; esac
srun_show -J one -w n1,n2 -N2 $four
has_ring 2
max_rings=1 as_solved 0 n{1..2}:0-3
case $(values TCCL_RING) in *"|"*) fail "several rings, by a policy that wants one" ;; esac
says "tccl: ring of 2 nodes, 8 GPUs: *"
recorded "$(job_of)" 0 policy one
recorded "$(job_of)" 0 rings 1
srun_show -w n1 -N1 $four
has_ring 1
says_nothing
all_have SITE_A site
none_has SITE_B
none_has NCCL_IB_TC
recorded "$(job_of)" 0 policy four
user_show salloc -w n1,n2 -N2 $four srun --ntasks-per-node=1 "$work/show"
has_ring 2
recorded "$(job_of)" 0 policy two
cat >"$work/job" <<JOB
#!/bin/bash
$work/show
srun --ntasks-per-node=1 $work/show
srun --ntasks-per-node=1 --tccl=off $work/show
SITE_A=mine srun --ntasks-per-node=1 $work/show
JOB
batch -w n1,n2 -N2 $four "$work/job"
has_ring 1 batch
equal "the script's SITE_A" "$(values SITE_A batch)" site
has_ring 2 0
all_have SITE_A two=2 0
none_has SITE_A 1
none_has TCCL_ENVIRONMENT 1
none_has TCCL_STATE 1
has_ring 2 2
all_have SITE_A mine 2
all_have NCCL_IB_TC 106 2
none_has NCCL_IB_TC 1
all_have SITE_B "two words" 2
for step in 0 2; do recorded "$job" $step policy two; done
recorded "$job" batch policy four

NCCL_IB_TC=41 srun_show -w n1,n2 -N2 $four
all_have NCCL_IB_TC 41
all_have NCCL_IB_SL 3
recorded "$(job_of)" 0 traffic_class 41/3

# What the user asks for goes before Default; no rule, no ring.
srun_show -w n1,n2 -N2 $four --tccl=off
none_has TCCL_STATE
none_has NCCL_IB_TC
TCCL=off srun_show -w n1 -N1 $four
none_has TCCL_STATE
srun_show -w n3 -N1 $four
none_has TCCL_STATE
none_has SITE_A
SITE_A=user srun_show -w n3 -N1 $four --tccl=on
has_ring 1
all_have SITE_A user
recorded "$(job_of)" 0 policy ""

# Forbidden: by rules that hold for this user in this partition, whatever the environment says.
for options in --tccl=on --tccl=auto TCCL=on TCCL=require --tccl=require --tccl=off none; do
    asks=("$options")
    [ "$options" != none ] || asks=()
    case $options in
    TCCL=*) user_show env "$options" SLURM_JOB_PARTITION=all SLURM_JOB_USER=root \
        srun -p other -w n1,n2 -N2 $four "$work/show" ;;
    *) srun_show -p other -w n1,n2 -N2 $four ${asks[@]+"${asks[@]}"} ;;
    esac
    none_has TCCL_RING
    none_has SITE_A
    case $options in
    *require)
        [ "$status" != 0 ] || fail "a required ring is forbidden, and the step succeeds"
        matches "what is said" "$(cat "$work/err")" "*tccl: no ring: policy 'no' forbids rings (the step ends*"
        equal "tasks" "$(tasks)" 0 ;;
    *=on)
        equal "exit status" "$status" 0
        no_ring 2 "policy 'no' forbids rings"
        says "tccl: no ring: policy 'no' forbids rings (NCCL's own choice is used)"
        all_have NCCL_IB_TC 7
        recorded "$(job_of)" 0 traffic_class 7
        recorded "$(job_of)" 0 reason "*policy 'no' forbids rings" ;;
    *)
        equal "exit status" "$status" 0
        equal "tasks" "$(tasks)" 2
        says_nothing ;;
    esac
done

# A ring that gains too little is left to NCCL in every mode, and costs nobody the step.
for mode in on require; do
    srun_show -J "gain $mode" -w n1,n2 -N2 $four --tccl=$mode
    equal "exit status" "$status" 0
    all_have TCCL_STATE left
    none_has LD_PRELOAD
    none_has SITE_A
    all_have NCCL_IB_SL 5
    none_has NCCL_IB_TC
    says "tccl: nothing to do: policy 'gain': the ring is only *x NCCL's own choice (* GB/s, *), MinGain is 50x"
    recorded "$(job_of)" 0 state left
    recorded "$(job_of)" 0 policy gain
done
srun_show -J more -w n1 -N1 $four --tccl=auto
all_have TCCL_STATE left
says_nothing

# How long a step waits for a node that is late.
late_slurmd n2 8 -J short -w n1,n2 -N2 $four -- --ntasks-per-node=1
all_have TCCL_STATE failed
says "tccl: no ring: n2: the step has not started there within 3??? ms*"
late_slurmd n2 10 -J short -w n1,n2 -N2 $four -- --ntasks-per-node=1 --tccl=require
[ "$status" != 0 ] || fail "the step succeeds without its ring"
says "tccl: no ring: n2: the step has not started there within 5??? ms*"

# tccl-path says the same.
explained=$(admin tccl-check policy --explain --partition all --user nobody --nodes 'n[1-2]' --gpus 8 \
    --gpu-type "Tesla V100-PCIE-32GB" --job-name x)
matches "explanation" "$explained" "*\[policy no\] *no: Partitions=oth\*,none: the partition is all*\[policy two\] *holds*policy *two*mode *on*"
