"""Access logs of web servers and proxies -> requests as arrays: formats, moments, classes of URLs."""
