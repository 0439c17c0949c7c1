"""Files below the file roots."""
