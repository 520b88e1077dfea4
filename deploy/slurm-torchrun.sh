#!/bin/bash
# A network on the GPUs of several nodes, by torchrun:
#   sbatch --nodes=8 --gpus-per-node=8 deploy/slurm-torchrun.sh \
#       train bert /shared/texts/ --preset base --steps 100000 --out /shared/runs/base
# Submitted again after a lost node, it continues from the last checkpoint.
#SBATCH --job-name=sememe-train
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --requeue
set -euo pipefail

export SEMEME_CACHE=${SEMEME_CACHE:-/shared/sememe-cache}
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
port=$((20000 + SLURM_JOB_ID % 20000))
srun torchrun --nnodes="$SLURM_JOB_NUM_NODES" --nproc-per-node="${SLURM_GPUS_ON_NODE:-1}" \
    --rdzv-backend=c10d --rdzv-id="$SLURM_JOB_ID" --rdzv-endpoint="$head:$port" \
    -m sememe.cli "$@" --resume
