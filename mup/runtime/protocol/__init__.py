"""What passes between processes: frames, headers, cookies, ids of traces, tokens."""
