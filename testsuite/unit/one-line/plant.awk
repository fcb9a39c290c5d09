# Adds one line to each table (of names that no real one has): of facts, or of keys of tccl.conf. wanted: how many tables there are.
{ print }
/^ *TEXT\(partition,/ {
    print "    TEXT(planted, \"SLURM_JOB_PLANTED\", TCCL_EVERYWHERE, \"planted\", \"Planted\", 12) \\"
    planted++
}
/^ *KEY\(uint16_t, port,/ { print "    KEY(int, spare, , \"Spare\", \"4\", tccl_set_count, 1, 9, NULL) \\"; planted++ }
/^ *KEY\(int, forbid,/ { print "    KEY(int, extra, , \"Extra\", \"1x\", set_gain, 1000, 2000, GAIN) \\"; planted++ }
END { exit planted != wanted }
