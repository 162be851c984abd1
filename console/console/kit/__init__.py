"""What every area uses: visits, calls, forms, times, charts."""
