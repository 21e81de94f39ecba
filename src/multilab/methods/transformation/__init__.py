"""Problem transformation: the multi-label task as binary or multi-class tasks of any base classifier."""
