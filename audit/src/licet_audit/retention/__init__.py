"""What may go and what must stay: erasing kept content, holding it, pruning old records."""
