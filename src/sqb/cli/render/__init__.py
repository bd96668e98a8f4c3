"""How results look: text for people, documents for machines. Nothing here decides anything."""
