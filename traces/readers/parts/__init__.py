"""What readers share: lines of triplets, layers of matrices, names in natural order, trained models."""
