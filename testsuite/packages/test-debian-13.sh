#!/bin/bash
# Debian 13 (Slurm 24.11): packages are built, installed, used, upgraded, removed and purged on a clean tree.
# level: all
. "$(dirname "$0")/debian.sh"
try_on trixie bookworm
