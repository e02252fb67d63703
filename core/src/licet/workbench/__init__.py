"""What the authors of policies work with: pure functions over stacks, decisions and records."""
