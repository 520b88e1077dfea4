#!/bin/bash
# One Ray cluster of the nodes of a Slurm job, and one command on it:
#   sbatch --nodes=8 --cpus-per-task=32 deploy/slurm-text.sh \
#       sememe train glove /shared/texts/ --out /shared/runs/glove
#SBATCH --job-name=sememe
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
set -euo pipefail

export SEMEME_CACHE=${SEMEME_CACHE:-/shared/sememe-cache}
export RAY_USAGE_STATS_ENABLED=0
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
port=$((20000 + SLURM_JOB_ID % 20000))  # two jobs on one node do not meet
cores=${SLURM_CPUS_PER_TASK:-$(nproc)}

# This script runs on the first node: its cluster ends with the job.
ray start --head --node-ip-address="$head" --port="$port" --num-cpus="$cores" \
    --include-dashboard=false
trap 'ray stop' EXIT
if [ "$SLURM_JOB_NUM_NODES" -gt 1 ]; then
    srun --nodes=$((SLURM_JOB_NUM_NODES - 1)) --ntasks=$((SLURM_JOB_NUM_NODES - 1)) \
        --exclude="$head" --cpus-per-task="$cores" \
        ray start --address="$head:$port" --num-cpus="$cores" --block &
fi

# Start when all nodes have come, or after two minutes with those that have.
for _ in $(seq 60); do
    have=$(sememe cluster status --cluster auto --json | grep -c '"name"' || true)
    [ "$have" -ge "$SLURM_JOB_NUM_NODES" ] && break
    sleep 2
done
"$@" --cluster auto
