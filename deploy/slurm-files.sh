#!/bin/bash
# An array job without Ray: each task cleans some of the files of a folder.
#   sbatch --array=0-63 --cpus-per-task=8 deploy/slurm-files.sh /shared/raw /shared/clean
#SBATCH --job-name=sememe-files
set -euo pipefail

from=$1
to=$2
mkdir -p "$to"
number=0
for file in "$from"/*; do
    if [ $((number % SLURM_ARRAY_TASK_COUNT)) -eq "$SLURM_ARRAY_TASK_ID" ]; then
        out=$to/$(basename "$file")
        # A task that is started again does not repeat what is there: files appear whole.
        [ -e "$out" ] || sememe clean "$file" --out "$out" --quiet
    fi
    number=$((number + 1))
done
