"""The HTTP edge: who asks, what is valid, how it looks; decisions are the domain's."""
