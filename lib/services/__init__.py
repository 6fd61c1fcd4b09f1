"""What the chapters share beside physics: data, the ledger, figures, sizes of experiments, sweeps."""
