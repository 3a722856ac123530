"""The mistakes that chapter 00's checks know: each has a name that stays, and the sentence that a student reads."""

from autograder.mistakes import Mistake


class batch_dot(Mistake):
    OVER_BATCH = "the sum runs over the batch: it should run along d"
    OVER_ALL = "everything is summed to one number: sum along d only"
    NOT_SUMMED = "the products are not summed"
    EVERY_ROW = "each row of a meets every row of b: row i of a should meet row i of b only"
    EVERY_COLUMN = "each column of a meets every column of b: row i of a should meet row i of b only"
    MATRIX_PRODUCT = "this is the product of two matrices: row i of a should meet row i of b only"
    SIZE_KEPT = "the summed dimension is kept, with size 1"
    AVERAGED = "the products are averaged instead of summed"
    LENGTHS = "the result is divided by the lengths of the vectors"
    FIRST_B = "only the first row of b is used"
    B_UNUSED = "b is not used"
    SIGN_LOST = "a sign is lost"
    B_SUMMED = "each row of a meets the sum of all rows of b: row i of a should meet row i of b only"
    SUMMED_FIRST = "the numbers of each vector are summed before they are multiplied: multiply first, then sum"
    TWO_DIMENSIONS = "it is right for some numbers of dimensions only: there may be any number before the last, or none"
    SQUEEZED = "`squeeze()` without a dimension removes every size of 1, the batch too: name the dimension"


class pairwise_dots(Mistake):
    ROWS_OF_Y = "there is a row for each vector of y: the rows belong to x, the columns to y"
    NOT_TURNED = "the vectors of x meet the columns of y: they should meet its rows"
    NOT_SUMMED = "the products are not summed"
    BATCH_SUMMED = "the batch is missing: sequences must not mix"
    ALL_SEQUENCES = "every sequence meets every other: sequences must not mix"
    Y_UNUSED = "y is not used"
    RESHAPED = "`reshape` or `view` where a transpose is meant: it keeps the order of the numbers in memory"
    AVERAGED = "the products are averaged instead of summed"
    EINSUM = "`einsum` is called: here the same is asked for without it"
    SUMMED_FIRST = "the numbers of each vector are summed before they are multiplied: multiply first, then sum"
    SCALED = "the result is divided by √d: that comes in chapter 3"
    SOFTMAX = "the weights of chapter 2 come too early: no softmax here"
    Y_SUMMED = "all sequences of y are summed up: sequences must not mix"
    LENGTHS = "the result is divided by the lengths of the vectors"
    FIRST_Y = "only the first sequence's y is used, for the whole batch"
    FIRST_X = "only the first sequence's x is used, for the whole batch"
    SQUEEZED = "`squeeze()` without a dimension removes every size of 1, the batch too: name the dimension"
