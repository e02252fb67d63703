"""What people who write policies work with: pure functions over policies, decisions and records."""
