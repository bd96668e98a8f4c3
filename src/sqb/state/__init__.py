"""What earlier builds recorded: records, where they are kept, and which of them is true now."""
