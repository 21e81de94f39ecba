#!/usr/bin/env bash
#SBATCH --job-name=multilab-worker
#SBATCH --array=1-8
#SBATCH --cpus-per-task=8
#SBATCH --mem=32G
#SBATCH --time=12:00:00
# Workers of a Dask scheduler as a SLURM array: sbatch scripts/dask/slurm.sh CERTIFICATES tls://LOGIN-NODE:8786
# Run it in the folder of the checkout: SLURM copies this file, so worker.sh is looked for there. Each task of the array is a
# worker with a thread, and so a cell at a time, per core. `scancel JOB` ends them; cells in work are computed elsewhere.
set -euo pipefail
cd "${SLURM_SUBMIT_DIR:-.}"
certificates=${1:?which folder of certificates?} scheduler=${2:?which scheduler? tls://HOST:8786}
shift 2
exec bash "${MULTILAB_SCRIPTS:-scripts/dask}/worker.sh" "$certificates" "$scheduler" \
  --nthreads "${SLURM_CPUS_PER_TASK:-1}" --local-directory "${TMPDIR:-/tmp}" "$@"
