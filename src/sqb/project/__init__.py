"""What the user wrote, as typed values with file and line."""
