#!/usr/bin/env bash
# Start a Dask worker with TLS: worker.sh CERTIFICATES tls://HOST:PORT [OPTIONS OF dask worker...]
# Run it in the folder whose conf/ the launching machine has, too. A thread of the worker only waits for the process that
# computes a cell, so there is one per core: `--nthreads 8`. It is started again until the scheduler is there, and
# whenever it ends, as it does when the scheduler dies. Ends with Ctrl-C or SIGTERM.
set -euo pipefail
certificates=$(cd "${1:?which folder of certificates?}" && pwd) scheduler=${2:?which scheduler? tls://HOST:8786}
shift 2
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
worker=
trap '[ -z "$worker" ] || kill "$worker"; exit 0' INT TERM
while true; do
  # No limit of memory: it would hold for the worker, not for the processes that compute; a study sets limits per cell.
  "${PYTHON:-python}" -m dask worker "$scheduler" --nworkers 1 --memory-limit 0 --death-timeout 60 \
    --preload multilab.cells.dask_engine --dashboard-address 127.0.0.1:0 \
    --tls-ca-file "$certificates/ca.pem" --tls-cert "$certificates/cert.pem" --tls-key "$certificates/key.pem" "$@" &
  worker=$!
  wait "$worker" || true
  sleep 5
done
