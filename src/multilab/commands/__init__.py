"""What several stages share: arguments, progress, receipts, and the steps behind a stage."""
