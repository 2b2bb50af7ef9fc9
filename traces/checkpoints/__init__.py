"""Checkpoints of language models: their tensors as stored, what one token reads of them, and in which format."""

from traces.checkpoints.checkpoint import read_checkpoint
from traces.checkpoints.stream import TensorStream
from traces.checkpoints.token_plan import TokenPlan, TokenRead, plan_token

__all__ = ["TensorStream", "TokenPlan", "TokenRead", "plan_token", "read_checkpoint"]
