"""What runs within a job's own process, whoever put it there: nothing but the standard library is needed."""
