"""What does a change do to response times and capacity, and which line of it does how much?

From two versions to ``mup compare``: ``touched`` (which endpoints), ``interleaved`` (explore in turns),
``two_models`` (calibrate), ``from_model`` (what is not measured), ``paired`` (figures and intervals),
``shares`` (what each line does).
"""
