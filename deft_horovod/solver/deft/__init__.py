"""DeFT's scheme: windows as knapsacks."""
