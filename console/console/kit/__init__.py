"""What every area uses: page contexts, calls, forms, times, charts."""
