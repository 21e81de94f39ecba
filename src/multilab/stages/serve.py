"""Serve a model of `multilab fit` over HTTP on 127.0.0.1, with the requests of `mlflow models serve`.

POST /invocations takes {"dataframe_split": {"columns": [...], "data": [[...]]}} or {"dataframe_records": [{...}]}, with
the columns of the training file, and returns {"predictions": [{label: 0 or 1, label_probability: ...}]}. A request that
the model cannot predict has the status 400 and one line that names the column. GET /ping is 200 when it is ready.
"""

import argparse


def main(argv: list[str]) -> int:
    """`multilab serve MODEL [--port 5001] [--max-mb 16]`."""
    parser = argparse.ArgumentParser(
        prog="multilab serve", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="models:/mine@champion, models:/m-..., or a folder of `multilab fit --output`")
    parser.add_argument("--port", type=int, default=5001, metavar="N", help="default 5001; 0: any free port")
    parser.add_argument("--max-mb", type=float, default=16, metavar="N", help="largest body of a request (default 16)")
    parser.add_argument("--tracking-uri", metavar="URI", help="MLflow store (default: as for `multilab train`)")
    arguments = parser.parse_args(argv)
    from multilab.deployment.serving import serve_model  # takes seconds

    return serve_model(arguments.model, arguments.port, arguments.tracking_uri, arguments.max_mb)
