"""What tables, REST and pages show: rows with the contract's field names."""
