"""The mistakes that chapter 06's checks know: each has a name that stays, and the sentence that a student reads."""

from autograder.mistakes import Mistake, breaks
from autograder.rules import Rule


class LayerNorm(Mistake):
    NO_PARAMETER = "`weight` or `bias` is no parameter, so that nothing can learn it: `nn.Parameter` makes one"
    START = "`weight` and `bias` do not start as ones and zeros, one for each feature: a fresh layer only normalizes"
    NO_EPS = "equal features give NaN: `eps` is left out"
    KEEPDIM = "a mean or variance loses its dimension and no longer fits x: `keepdim=True` keeps it"
    OVER_POSITIONS = "mean and variance are taken over the positions, not over the features of each"
    OVER_BOTH = "mean and variance are taken over positions and features together: each position has its own"
    OVER_BATCH = "mean and variance are taken over the batch: its items must not touch each other"
    OVER_BATCH_AND_POSITIONS = "mean and variance are taken over batch and positions, as a batch norm does"
    OVER_ALL = "mean and variance are taken over the whole tensor: each position has its own"
    OVER_DIMENSION_2 = "mean and variance are taken over dimension 2, which is the last in three dimensions alone"
    UNBIASED = "the variance is divided by d - 1, as torch does unless it is told otherwise"
    SUMMED = "the squares of the deviations are summed, not averaged: the variance is their mean"
    NO_ROOT = "the deviations are divided by the variance, not by its root"
    NOT_DIVIDED = "nothing is divided by the standard deviation"
    DIVIDED_MEAN = "only the mean is divided by the standard deviation: `x - mean` needs brackets"
    NOT_CENTRED = "the mean is not subtracted before the division"
    NEVER_CENTRED = "the mean is subtracted nowhere: x is divided by its root mean square"
    ONE_ADDED = "1 is added to `weight`: here it starts as ones, and multiplies as it is"
    NO_WEIGHT = "`weight` is not used"
    NO_BIAS = "`bias` is not used"
    BIAS_FIRST = "`bias` is added before the multiplication by `weight`"
    EPS_OUTSIDE = "`eps` is added outside the root: it belongs to the variance"
    EPS_IGNORED = "the argument `eps` is ignored, or not added to the variance"
    LIBRARY = "a norm of a library does the work: write this exercise with means, squares and roots"
    STATISTICS_CUT_OFF = (
        "mean and variance are cut off from the graph: they depend on x, and gradients flow through them"
    )
    ROOT_OF_VARIANCE = (
        "equal features give NaN gradients: a root is taken of the variance alone, and its slope at 0 is infinite; add "
        "`eps` before it"
    )
    DIFFERENCE_OF_SQUARES = "far from zero all digits are lost: the mean is to be subtracted before anything is squared"
    SILENT_IN_EVAL = "the layer does something else after `.eval()`: it should normalize always"


class Network(Mistake):
    """Of both feed-forward networks, which compute the same."""

    NO_CONVOLUTION = "`inner` or `outer` is no convolution of width 1 between `dim` and `hidden` features"
    NO_RELU = "the ReLU is missing, and two linear maps without it are one"
    RELU_LAST = "the ReLU comes after `outer`, not between the two"
    RELU_TWICE = "a second ReLU follows `outer`: only the hidden features go through one"
    RELU_FIRST = "the ReLU comes before `inner`, not between the two"
    RELU_BEFORE = "a ReLU comes before `inner` too: the input goes into it as it is"
    GELU = "GELU takes the place of ReLU"
    SIGMOID = "a sigmoid takes the place of ReLU"
    BOUNDED = "large hidden features are cut off: a ReLU lets what is positive through as it is"
    RESIDUAL = "the input is added to the result: the residual connection belongs to the block"
    FIRST_SEQUENCE = "the second sequence has the first one's result"
    NO_BATCH = "a batch of one sequence loses its dimension: `squeeze()` removes whatever has size 1"
    NOT_TURNED = "features and positions are not exchanged on the way in: `view` and `reshape` do not do that"
    NOT_TURNED_BACK = "features and positions are not exchanged back in the end: `view` and `reshape` do not do that"
    NEVER_TURNED = "the convolutions run along the features: positions should be the last dimension for them"
    NO_DROPOUT = "the argument `dropout` has no effect"
    DROPOUT_BY_DEFAULT = "hidden features are dropped though nobody asked for it: the default of `dropout` is 0"
    DROPOUT_ON_RESULT = "dropout acts on the result: it belongs on the hidden features alone"
    DROPOUT_ON_INPUT = "dropout acts on the input: it belongs on the hidden features alone"
    DROPOUT_SHARE = "another share of the hidden features is dropped than `dropout` says"
    DROPOUT_SCALE = "what dropout leaves is not scaled as it should be for what it drops: `nn.Dropout` does that alone"


class TransformerBlock(Mistake):
    SHARED_NORM = "one LayerNorm is used twice, or one is missing: there are two, each with its own weights"
    NO_PART = "the block has no part with weights under a name that the exercise gives"
    NOT_ATTENTION = "`attention` is not the MultiHeadAttention of chapter 4"
    NO_FEED_FORWARD = "`feed_forward` is not the FeedForward of this chapter"
    SIZE = "a part of the block has another size than `dim`: each position has `dim` features"
    HIDDEN_DEFAULT = "the network has another number of hidden features than `hidden`'s default says"
    HIDDEN_IGNORED = "`hidden` is not passed on to the feed-forward network"
    WEIGHTS_TOO = "forward gives the attention's weights too: it should give y alone"
    DROPOUT_BY_DEFAULT = "numbers are dropped though nobody asked for it: the default of `dropout` is 0"
    ONLY_A_NORM = "the block returns only a LayerNorm of its input"
    ONLY_NORMS = "the block returns its input, normalized twice: attention and network are missing"
    ORDER_SWAPPED = "the order of the norms is swapped, and this is pre-norm; or both norms are missing"
    NO_EFFECT = "`norm_first=True` has no effect, or both sums are normalized all the same, as in post-norm"
    BOTH_SUBTRACTED = "both residuals are subtracted, not added"
    ATTENTION_SUBTRACTED = "the residual around the attention is subtracted, not added"
    NETWORK_SUBTRACTED = "the residual around the feed-forward network is subtracted, not added"
    NO_ATTENTION_RESIDUAL = "the residual connection around the attention is missing"
    NO_NETWORK_RESIDUAL = "the residual connection around the feed-forward network is missing, or both are"
    NORM_1_TWICE = "`norm_1` is used twice, and `norm_2` never"
    NORM_2_TWICE = "`norm_2` is used twice, and `norm_1` never"
    NORMS_EXCHANGED = "`norm_1` and `norm_2` are exchanged: `norm_1` belongs to the attention"
    NETWORK_FIRST = "the feed-forward network comes first: attention is the first sublayer"
    SECOND_ADDS_INPUT = (
        "the second residual adds the block's input, not the first half's result; or there is no attention"
    )
    NO_NORM_1 = "`norm_1` is missing, or the second residual goes round it"
    NO_NORM_2 = "`norm_2` is missing"
    NO_NETWORK = "the feed-forward network is missing"
    NO_ATTENTION = "the attention is missing"
    NORM_ON_OUTPUT = "a LayerNorm acts on each sublayer's output before it is added, which is neither order"
    NORMED_AROUND_ATTENTION = "around the attention norm(x) is added, not x: the residual path goes round the norm"
    NORMED_AROUND_NETWORK = "around the network norm(x) is added, not x: the residual path goes round the norm"
    NORMED_AROUND_BOTH = "around both sublayers norm(x) is added, not x: the residual path goes round the norm"
    LAST_NORM = "a norm follows the last addition too: a pre-norm block ends with the sum"
    VALUES_NOT_NORMALIZED = "the attention's values are not normalized: queries, keys and values all come from norm(x)"
    ATTENTION_ON_NORM_2 = "the attention is given `norm_2` of the input: `norm_1` belongs to it"
    NETWORK_NOT_NORMALIZED = "the feed-forward network is given the sum as it is: `norm_2` of it should go in"
    NETWORK_ON_NORM_1 = "the feed-forward network is given `norm_1` of the sum: `norm_2` belongs to it"
    NETWORK_ON_INPUT = "the feed-forward network is given the block's input: it should get the first half's result"
    UNMASKED = "the mask is not passed on to the attention"
    MASK_TURNED = "the mask is turned round: True means that a position may be attended to"
    NETWORK_WITHOUT_RELU = "the feed-forward network has no ReLU"
    ONE_HEAD = "`heads` is not passed on: the attention has one head"
    DROPOUT_AFTER = "dropout is applied after the residual is added: it belongs on the sublayer's output alone"
    ATTENTION_NOT_DROPPED = "the attention's output is not dropped"
    NETWORK_NOT_DROPPED = "the feed-forward network's output is not dropped"
    DROPOUT_ON_INPUT = "dropout acts on what a sublayer is given: it belongs on what comes out of it"
    DROPOUT_SHARE = "another share of the sublayers' outputs is dropped than `dropout` says"
    NEITHER_DROPPED = "neither sublayer's output is dropped"


class check_layer_norm(Mistake):
    REJECTS_RIGHT = (
        "your test rejects a right layer: numbers are compared with a tolerance, and no more is asked for than the "
        "specification does"
    )
    RETURNS = "your test returns its verdict: a test speaks by `assert`"
    CRASHES = "your test stops with another error where an `assert` should fail: assert first what the next line needs"
    ACCEPTS_UNCHANGED = "your test accepts a layer that returns its input unchanged"
    ACCEPTS_TWICE = "your test accepts a layer that returns twice the right result"
    ACCEPTS_UNWEIGHTED = "your test accepts a layer that uses neither its weight nor its bias"
    FORMULA = "your test accepts a layer with a wrong formula: does its tolerance forgive too much?"
    EPS_IGNORED = "your test accepts a layer that ignores the argument eps: pass one, and make it large"
    EPS_DEFAULT = (
        "your test accepts a layer with another default of eps: without one of your own, try inputs of small variance"
    )
    OTHER_DIMENSIONS = "your test accepts a layer whose statistics run over other dimensions than the features alone"
    DIMENSION_2 = "your test accepts a layer that normalizes over dimension 2: try other numbers of dimensions"
    SEQUENCES = "your test accepts a layer that mixes sequences: test more than one, and compare each"
    BIAS = "your test accepts a layer that does not use its bias: set one, it starts as zeros"
    WEIGHT = "your test accepts a layer that uses its weight wrongly: set entries that differ"
    START = "your test accepts a layer whose weight and bias start with other numbers"
    NO_PARAMETERS = (
        "your test accepts a layer whose weight and bias are no parameters, so that no optimizer trains them"
    )
    IN_PLACE = "your test accepts a layer that changes its input: compare it with a copy made before the call"
    GRADIENTS = "your test accepts a layer whose values are right and gradients wrong: compare gradients"
    EVAL = "your test accepts a layer that does not normalize after `.eval()`"


breaks(Rule.START, LayerNorm.START)
