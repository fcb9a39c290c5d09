# Adds one line to the table of facts.
{ print }
/^ *TEXT\(partition,/ {
    print "    TEXT(reservation, \"SLURM_JOB_RESERVATION\", TCCL_EVERYWHERE, \"reservations\", \"Reservation\", 12) \\"
    planted++
}
END { exit planted != 1 }
