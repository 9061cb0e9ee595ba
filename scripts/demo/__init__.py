"""Stock Horovod and deft_horovod train the same small GPT, in turn, over a slow link."""
