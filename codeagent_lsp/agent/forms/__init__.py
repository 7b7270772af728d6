"""Answer forms: the formats in which a model can return changed code, and which of them a model is good at.

`tools` is the loop of tool calls. The others are plain answers: `whole` files, whole `function`s, one `line`, search
and replace `blocks`, and `diff`s. Not here: asking the model and checking the result (`agent/solving`).
"""
