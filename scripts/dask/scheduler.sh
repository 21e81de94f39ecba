#!/usr/bin/env bash
# Start a Dask scheduler with TLS: scheduler.sh CERTIFICATES HOST [PORT] [OPTIONS OF dask scheduler...]
# CERTIFICATES is the folder that certificates.sh made. The dashboard answers on this machine only: look at it through
# `ssh -L 8787:127.0.0.1:8787 HOST`. Ends with Ctrl-C.
set -euo pipefail
certificates=$(cd "${1:?which folder of certificates?}" && pwd) host=${2:?which address of this machine?} port=${3:-8786}
shift 2
[ $# -eq 0 ] || shift
exec "${PYTHON:-python}" -m dask scheduler --protocol tls --host "$host" --port "$port" \
  --tls-ca-file "$certificates/ca.pem" --tls-cert "$certificates/cert.pem" --tls-key "$certificates/key.pem" \
  --dashboard-address 127.0.0.1:8787 --no-jupyter "$@"
