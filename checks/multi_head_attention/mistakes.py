"""The mistakes that chapter 04's checks know: each has a name that stays, and the sentence that a student reads."""

from autograder.mistakes import Mistake, breaks
from autograder.rules import Rule


class split_heads(Mistake):
    MIXED_UP = (
        "positions and heads are mixed up: a reshape reads numbers in their order, so that a head holds whole positions"
    )
    INTERLEAVED = "the heads are interleaved: a head is a block of consecutive features"
    AFTER_POSITIONS = "the heads come after the positions: two dimensions are still to be exchanged"
    BEFORE_BATCH = "the heads come before the batch"
    FOLDED = "batch and heads are one dimension, or one of them is gone: the result has four, `(B, h, n, d/h)`"
    FEATURES_FIRST = "a head's features come before its positions: the last two dimensions are exchanged"
    SIZES_EXCHANGED = "the number of heads and the features of one are exchanged"
    HEAD_0 = "every head has the features of head 0"
    ITEM_0 = "every item of the batch has the features of item 0"


class merge_heads(Mistake):
    MIXED_UP = "positions and heads are mixed up: a reshape alone does not move the heads behind the positions"
    INTERLEAVED = "the heads are interleaved: all features of head 0 come first, then all of head 1, and so on"
    EXCHANGED = "features and positions are exchanged"
    ADDED = "the heads are added up, not put side by side"
    AVERAGED = "the heads are averaged, not put side by side"
    HEAD_0 = "only head 0 is kept"
    AS_POSITIONS = "the heads are stacked as positions, not put side by side"
    REVERSED = "the heads are in reverse order"
    NO_BATCH = "a batch of one sequence loses its dimension: `squeeze()` removes whatever has size 1"
    ITEM_0 = "every item of the batch has the features of item 0"


class Attention(Mistake):
    """Of both classes, which go wrong alike."""

    MAPS_OF_A_SLICE = "Wq, Wk and Wv are not maps of one head's slice, one each for all heads"
    WO_OF_ALL = "WO is not one map of all features, with its bias"
    MAPS_OF_ALL = "Wq, Wk, Wv and WO are not maps of all features, each with its bias"
    SLICE_MAP_OF_ALL = "a map of one head's slice is given all features: narrow heads split first, then map"
    FULL_MAP_OF_A_SLICE = (
        "a map of all features is given those of one head only: WO comes after the merge, and in wide heads the other "
        "maps come before the split"
    )
    SIZES_EXCHANGED = (
        "the number of heads and the features of one are exchanged: `split_heads` wants to know how many heads"
    )
    WEIGHTS_AS_OUTPUT = "the weights are used as the output: `scaled_dot_product_attention` returns them second"
    BY_ALL_FEATURES = "the scores are divided by √dim: in a head, a dot product has fewer terms than that"
    BY_LENGTH = "the scores are divided by the root of the sequence length: it is the features that count"
    BY_NO_ROOT = "the scores are divided by the number of a head's features, or twice by its root, not once by its root"
    NOT_SCALED = "the scores are not scaled"
    INTERLEAVED = "the heads are interleaved: a head is a block of consecutive features"
    MIXED_UP = "positions and heads are mixed up on the way in: `split_heads` keeps them apart"
    RESHAPED_IN = (
        "`reshape` or `view` cuts the heads: it leaves the numbers in their order, so that positions and heads are "
        "mixed up; `split_heads` keeps them apart"
    )
    MIXED_UP_AFTER = "positions and heads are mixed up at the end: `merge_heads` brings them back"
    ORDER_AFTER = "the heads are put back in the wrong order: `merge_heads` knows the right one"
    AMONG_HEADS = "the heads of a position look at each other, not at positions: heads have to come before positions"
    OVER_QUERIES = "the softmax runs over the queries, not over the positions looked at"
    OVER_HEADS = "the softmax runs over the heads, not over the positions looked at"
    WEIGHTS_OF_HEAD_0 = "the weights of head 0 are used for every head"
    WEIGHTS_OF_ITEM_0 = "the weights of batch item 0 are used for the whole batch"
    SLICE_0 = "every head sees the slice of head 0"
    HEADS_AVERAGED = "the heads' outputs are averaged, not put side by side"
    RESIDUAL = "the input is added to the output: the residual belongs to chapter 6"
    NO_OUTPUT_MAP = "the heads' outputs are not mapped by WO at the end"
    NO_VALUE_MAP = "the values are not mapped by Wv"
    MAPS_SWAPPED = "queries and keys are swapped: Wq belongs to the queries, Wk to the keys"
    ROWS_SWAPPED = "queries and keys are swapped in the scores: row i of the weights belongs to query i"
    KEYS_AND_VALUES_SWAPPED = "keys and values are swapped: Wk belongs to the keys, Wv to the values"
    KEYS_BY_WQ = "Wq is used for the keys too"
    VALUES_BY_WK = "Wk is used for the values too"
    KEYS_AS_VALUES = "the keys are used as values: values are the third argument"
    VALUES_AS_KEYS = "the values are used as keys: keys are the second argument"
    NOT_AS_QUERIES = "the keys or the values are used as queries: queries are the first argument"
    QUERIES_AS_KEYS = (
        "the weights have a column for each query, not for each key: the queries are used as keys, or the two are "
        "swapped"
    )
    QUERIES_AS_VALUES = "the queries are used as values: values are the third argument"
    QUERIES_ONLY = "the queries are used as keys and values too: there are three arguments"
    ONE_RESULT = "not two things are returned, the output and the weights"
    WEIGHTS_FIRST = "the weights come before the output: the output is the first of the two"
    WEIGHTS_TRANSPOSED = "the weights returned are transposed: row i belongs to query i"
    WEIGHTS_AVERAGED = "the weights returned are averaged over the heads: those of each head are asked for"
    WEIGHTS_OF_ONE = "the weights returned are those of one head only"
    WEIGHTS_FOLDED = "batch and heads are one dimension in the weights returned: four are asked for, `(B, h, n, m)`"
    MASK_IGNORED = "the mask has no effect: it is ignored, or the scores are set to 0, and exp(0) is 1"
    MASK_TURNED = (
        "the mask has the wrong sign, so that what is blocked gets all attention: True means allowed, and the scores "
        "where it is False become very negative"
    )
    MASK_LINED_UP = (
        "a mask of three dimensions lines up its batch with the heads: it needs a dimension for them behind its batch"
    )
    MASK_OF_TWO = "a mask of two dimensions does not go in: only one with a batch lacks a dimension for the heads"
    MASK_OF_FOUR = "a mask of four dimensions does not go in: it has one for the heads already"
    MASK_IN_HEAD_0 = "the mask is applied in head 0 only: it holds for every head"
    MASK_OF_HEAD_0 = "the mask of head 0 is used for every head"
    MASK_OF_ITEM_0 = "the mask of batch item 0 is used for the whole batch"
    MASK_AFTER = "the mask is applied after the softmax, so that rows no longer sum to 1"
    MASK_LATE = (
        "the mask is applied after the softmax, and the rows are divided by their sums: a blocked key with a large "
        "score has taken all the weight by then"
    )
    MASK_ADDED = "the mask moves scores by no more than 1, as if it were added to them as 0 and 1: this blocks nothing"
    MASK_TRANSPOSED = "the mask is transposed: mask[i, j] says whether output i may look at position j"
    EMPTY_ROW = "a row that may look at nothing looks at everything equally: its weights should be 0"
    NO_DROPOUT = "no weight is dropped in training"
    WEIGHTS_DROPPED = "the weights returned are those after dropout: they are asked for as they were before"
    DROPOUT_ELSEWHERE = "dropout acts on the output, the values or the features, not on the weights"
    DROPOUT_EARLY = "dropout acts before the softmax, on the scores or on what they are made of, not on the weights"
    DROPOUT_MISPLACED = (
        "the weights that dropout leaves are not scaled up as `dropout` says: it belongs after the softmax, once"
    )
    DROPOUT_SHARE = "another share of the weights is dropped than `dropout` says"
    DROPOUT_SHARED = "the same weights are dropped in several heads or items: each has a draw of its own"
    HEADS_NOT_KEPT = "the number of heads is not kept as `self.heads`"
    DROPOUT_NOT_KEPT = "the dropout is not kept as `self.dropout`, an `nn.Dropout` with the rate given"


class copy_into_torch(Mistake):
    NOT_TORCHS = "what is returned is no `nn.MultiheadAttention`"
    NOT_BATCH_FIRST = "the copy takes (seq_len, batch, dim): torch's default; it has an option for ours"
    HEADS = "the copy has another number of heads"
    DROPOUT = "the copy has another dropout than the original"
    NO_BIAS = "the copy has no biases: ours has them, and torch's has them by default"
    ORDER = "a map is in the place of another: first come the queries, then the keys, then the values"
    TRANSPOSED = "a weight is transposed: both of torch's classes store it the same way round"
    NOT_COPIED = "the copy has other numbers than the original there: was this part copied?"
    ORIGINAL_CHANGED = "copying changes the original: copy from ours into torch's, not the other way"
    SHARED = "the copy shares memory with the original: when one learns, the other changes"
    FROZEN = "the copy, or the original, does not learn any more"
    MODE = "the copy is not in the original's mode, training or eval, or the original's mode was changed"


class count_parameters(Mistake):
    NO_INT = "the count is no Python int"
    TENSORS = "the parameter tensors are counted, not the numbers in them"
    FIRST_ALONE = "only the first parameter is counted: does the `return` stand inside the loop?"
    LAST_ALONE = "only the last parameter is counted: each is to be added to those before it"
    NO_BIASES = "the biases are not counted"
    NESTED = "the parameters of modules inside modules are not counted"
    EACH_LEVEL = "a parameter is counted for each module around it: `parameters()` goes into modules inside by itself"
    OWN = "a module's own parameters are not counted, but only those of the modules inside it"
    FIRST_DIMENSION = "only the first dimension of each parameter is counted"
    BYTES = "these are bytes, several for each number"
    TWO_DIMENSIONS = "only matrices and vectors are counted rightly: a parameter may have any number of dimensions"
    FROZEN = "frozen parameters are not counted: they count too"
    TWICE = "a parameter that stands in two places is counted twice"
    BUFFERS = "buffers are counted: they are no parameters"
    CHANGED = "counting changes what is frozen, or the mode: leave the module as it is"


breaks(Rule.UNCHANGED, copy_into_torch.ORIGINAL_CHANGED, copy_into_torch.SHARED)
