"""HTTP server of a replica: connections, requests, responses, files."""
