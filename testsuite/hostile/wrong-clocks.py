#!/usr/bin/env python3
"""wrong-clocks: KeepRecords=60d, and the clock of the node that keeps the records is 810 days ahead, then 20000 days
behind; records come that are dated as far off. None is removed, and those are marked.
# level: quick
"""
import os
import signal
import time

from attack import Target, check, daemons, record, verdict

DAY, COUNT, NOW = 86400, 300, int(time.time())


def main():
    preload = f"{daemons.BUILD}/testsuite/unit/libjump-clock.so"
    store = [record(job, start=NOW - 60 - (COUNT - job) * DAY // 6) for job in range(1, COUNT + 1)]
    target = Target(conf=["KeepRecords=60d"], records=store)
    clock = os.environ["TCCL_CLOCK_FILE"] = f"{target.folder}/clock"
    os.environ["LD_PRELOAD"] = preload

    def be_off(days):
        target.stop(number=signal.SIGTERM)
        with open(clock, "w") as file:
            file.write(str(days))
        target.start_again()

    def count():
        return len([each for each in target.records() if each["job"] <= COUNT])

    def deliver(job, days):
        with target.tcp() as peer:
            check(target.tell(peer, record(job, start=NOW + days * DAY)), f"a record dated {days} days from now is taken")

    def arrived(job):
        return target.records(jobs=[{"job": job}])[0].get("arrived", 0)

    with target:
        os.environ.pop("LD_PRELOAD")
        check(count() == COUNT, f"{count()} of {COUNT} records before")
        os.environ["LD_PRELOAD"] = preload
        be_off(810)
        target.await_log("the clock is 810 days ahead")
        check(count() == COUNT, f"the clock 810 days ahead: {count()} of {COUNT} records")
        deliver(1001, 810)
        os.kill(target.tcclds[0].pid, signal.SIGHUP)
        target.await_log("configuration reloaded")
        time.sleep(1)
        check(count() == COUNT, f"a record of that time has come: {count()} of {COUNT} records")
        be_off(-20000)
        target.await_log("days behind")
        check(count() == COUNT, f"the clock 20000 days behind: {count()} of {COUNT} records")
        deliver(1002, -20000)
        be_off(0)
        deliver(1003, 0)
        check(count() == COUNT, f"the clock is right again: {count()} of {COUNT} records")
        check(abs(arrived(1001) - NOW) < DAY and abs(arrived(1002) - NOW) < DAY, "misdated ones are marked")
        check(arrived(1003) == 0, "and no others")
        with open(f"{target.folder}/tccl.conf") as file:
            text = file.read().replace("KeepRecords=60d", "KeepRecords=10d")
        with open(f"{target.folder}/tccl.conf", "w") as file:
            file.write(text)
        os.kill(target.tcclds[0].pid, signal.SIGHUP)
        target.await_log("older than KeepRecords=10d")
        check(count() == 60 and arrived(1002), f"what is too old goes: {count()} of {COUNT} records left")
    verdict()


main()
