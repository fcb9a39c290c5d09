#!/bin/bash
# Debian 12 (Slurm 22.05): packages are built, installed, used, upgraded, removed and purged on a clean tree.
# level: all
. "$(dirname "$0")/debian.sh"
try_on bookworm trixie
