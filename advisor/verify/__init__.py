"""Parts of verification: the baseline, the series it rests on, what else changed."""
