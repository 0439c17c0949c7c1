"""Apps in the browser: ports at addresses of their own, who is signed in there, and who may be."""
