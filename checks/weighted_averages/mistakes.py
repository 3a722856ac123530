"""The mistakes that chapter 01's checks know: each has a name that stays, and the sentence that a student reads."""

from autograder.mistakes import Mistake


class weighted_avg(Mistake):
    """Of both exercises that average: they differ in how the sum is written, not in what it is."""

    TRANSPOSED = "the weights are transposed: `weights[b, i, j]` is how much output i takes from position j"
    EXCHANGED = "x and the weights are exchanged: row i of the weights should meet the columns of x"
    FIRST_WEIGHTS = "only the first sequence's weights are used, for the whole batch"
    FIRST_SEQUENCE = "only the first sequence is averaged, for the whole batch"
    BATCH_SUMMED = "the batch is summed over: sequences must not mix"
    AVERAGED = "the products are averaged instead of summed: the weights already sum to 1"
    PLAIN_MEAN = "the weights are ignored: this is the plain mean"
    NORMALISED_AGAIN = "the weights are normalized again: use them as they are"
    SOFTMAX = "the weights go through a softmax: they are weights already, use them as they are"
    THREE_DIMENSIONS = "it is right for three dimensions only: there may be any number before the last two"
    ONE_EINSUM = "the exercise asks for exactly one `torch.einsum`"
    MORE_THAN_EINSUM = "the einsum should do the whole work, and another product or sum does a part of it"


class window_weights(Mistake):
    FORWARD = "the window looks forward: output i takes from i and the positions before it"
    BOTH_SIDES = "the window reaches to both sides: output i takes from i and the positions before it"
    DIVIDED_BY_WIDTH = "every row is divided by `width`: at the beginning there are fewer positions"
    ONE_TOO_MANY = "the window holds `width` positions besides its own"
    ONE_TOO_FEW = "the window holds one position too few"
    OWN_LEFT_OUT = "the window leaves out its own position: output i takes from i, too"
    COLUMNS = "the columns sum to 1, but the rows should"
    WRAPPED = "at the beginning the window goes on at the end: before position 0 there is nothing"
    FIRST_REPEATED = "position 0 is counted again for each position that is missing before it: leave those out"
    TRANSPOSED = "the matrix is transposed: it should have a row for each output"
    NOT_KEPT = (
        "each column is divided by a row's sum: a shape `(n,)` lines up with the last dimension; `keepdim=True` makes "
        "it `(n, 1)`"
    )
    NOT_DIVIDED = "the rows are not divided by anything"
    SOFTMAX = (
        "a softmax of ones and zeros leaves weight outside the window, since exp(0) is 1: divide by each row's sum"
    )
    WIDTH_2 = "it is right for a width of 2 only"
    WIDTH_IGNORED = "the width is ignored: this is the mean of everything so far"
