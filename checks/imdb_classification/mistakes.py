"""The mistakes that chapter 07's checks know: each has a name that stays, and the sentence that a student reads."""

from autograder.mistakes import Mistake, breaks
from autograder.rules import Rule


class masked_mean(Mistake):
    OVER_FEATURES = "the average runs over the features: it should run over the positions, dimension 1"
    OVER_BATCH = "the average runs over the batch: it should run over the positions, dimension 1"
    EMPTY_ROW = "an all-False row gives NaN, 0 divided by 0: divide by `count.clamp(min=1)`"
    EMPTY_ROW_GRADIENT = (
        "an all-False row has NaN gradients, which would spoil every weight of a model: dividing by 0 and replacing "
        "the NaN afterwards mends the value only; divide by `count.clamp(min=1)` instead"
    )
    MASK_UNUSED = "the mask is not used, every position counts"
    NOT_DIVIDED = "the sum is not divided by the number of positions that count"
    DIVIDED_BY_N = "the sum is divided by n, not by the number of positions that count"
    ALL_TOGETHER = "all sequences are averaged together: each one has a mean of its own, a row of the result"
    COUNT_OF_BATCH = "the sum is divided by the count of the whole batch: each sequence has its own"
    ONE_TOO_MANY = "1 is added to each count"
    FIRST_MASK = "the first sequence's mask is used for the whole batch"
    LARGEST = "the largest value is taken, not the mean"
    TURNED_ROUND = "the mask is turned round: True means that a position counts"


class TransformerClassifier(Mistake):
    BLOCKS = (
        "`blocks` is no nn.ModuleList of `depth` TransformerBlocks, each made anew: torch does not find parameters in "
        "a plain list, and counts a block that stands there twice once"
    )
    PART_MISSING = "a part that the exercise names is missing, or has no weights"
    POSITIONS = "`positions` is not PositionEmbedding(dim, dropout, max_len)"
    CLASSES = "`classes` is not nn.Linear(dim, num_classes)"
    SCORES = "the scores of the classes are returned: a log-softmax is missing"
    PROBABILITIES = "probabilities are returned, not log-probabilities: use a log-softmax"
    OVER_BATCH = "the log-softmax runs over the batch: the classes are the last dimension"
    LOG_SIGMOID = "a log-sigmoid takes the place of the log-softmax"
    RELU = "a ReLU follows `classes`"
    LARGEST = "the largest value over the positions is taken, not the mean"
    NO_MEAN = (
        "the positions are still there: no mean is taken over them, or `masked_mean` got a mask of `(B, 1, n)`, where "
        "it wants `(B, n)`"
    )
    PADDING_ALONE = "the mask is turned round: padding alone is averaged"
    MEAN_OVER_PADDING = "the mean runs over padding too: give `masked_mean` the tokens' mask"
    PAD_IS_0 = "padding is taken to be token 0: it is `pad_id`, 1 by default"
    PAD_ID_IGNORED = "the argument `pad_id` is ignored"
    PADDING_COUNTED = (
        "padding is counted, and taken to be the last positions: it is each token that is `pad_id`, wherever it stands"
    )
    SUM = "the sum over the tokens is taken, not the mean"
    DIVIDED_BY_N = "the sum is divided by n, padding included: use your masked_mean"
    FIRST_POSITION = "only the first position is read, not the mean of all"
    LAST_POSITION = "only the last position is read, not the mean of all"
    NORM_UNUSED = "`norm` is not used: it acts on each position, before the mean"
    NORM_AFTER_MEAN = "`norm` comes after the mean: it acts on each position, before they are averaged"
    NORM_BETWEEN = "`norm` acts behind each block, inside the loop: it comes once, after the last block"
    NORM_FIRST = "`norm` comes before the blocks: it comes after the last one"
    ADDED_TWICE = "`x` is added to what a block returns: a block adds it by itself, `x = block(x, mask)`"
    POSITIONS_TWICE = "the vectors are added to what `positions` returns, which holds them: `x = self.positions(x)`"
    CLASSES_FIRST = (
        "`classes` comes before the mean, so that a sequence of nothing but padding loses its bias: average first"
    )
    ATTENDS_TO_PADDING = (
        "padding behind a sequence changes its result, so that words attend to padding: the blocks do not get the "
        "mask, or it is turned round"
    )
    NO_POSITIONS = "no positions are added, so that the order of words is lost"
    SCALED = "the embedding is scaled by the root of dim"
    POST_NORM = "the blocks are post-norm: pass norm_first=True"
    BLOCKS_UNUSED = "the blocks are not used"
    FIRST_BLOCK_ONLY = "only the first block is used: each one reads what the one before returned"
    MORE_DROPOUT = "there is a dropout too many: `positions` and the blocks drop by themselves, and nothing else does"
    NO_DROPOUT = "`dropout` has no effect: pass it to `positions` and to the blocks"
    NO_DROPOUT_ON_POSITIONS = "`dropout` is not passed to `positions`"
    NO_DROPOUT_IN_BLOCKS = "`dropout` is not passed to the blocks"


class accuracy(Mistake):
    COUNTED = "the right answers are counted, not divided by their number"
    PERCENTAGE = "this is a percentage: it should be a fraction between 0 and 1"
    WRONG_ANSWERS = "this is the fraction of wrong answers"
    OVER_EXAMPLES = "the maximum is taken over the examples, not over the classes: use dimension -1"
    MEAN_PROBABILITY = "this is the mean probability of the right class: only the most likely class is asked for"
    ZERO = "the result is 0: is it integer division, `all`, the least likely class, or scores compared with labels?"
    OF_ALL = "the maximum is taken over all examples together: each has a most likely class, so use dimension -1"
    EXPONENTIALS = "an exponential of large scores is infinite, and of small ones 0: the largest score says the class"
    FIRST_EXAMPLE = "only the first example is counted"
    NUMBER_OF_CLASSES = "the sum is divided by the number of classes"
    ABOVE_ONE_HALF = "class 1 is taken where its probability is above one half, whatever the others have"


class AccumulatingMetric(Mistake):
    NOT_VALUE_ERROR = "an empty metric raises another error, and should raise ValueError: look before you divide"
    NOTHING_RAISED = "the mean of nothing should raise ValueError, and nothing is raised"
    COUNT_UNUSED = "`count` is not used: each value stands for `count` examples"
    SUM = "the sum is returned, not the mean"
    NUMBER_OF_CALLS = "the sum is divided by the number of calls, not of examples"
    NOT_WEIGHTED = "the values are not multiplied by their counts"
    LAST_VALUE = "only the last value is kept"
    FADES = "this is the mean of the old mean and the new value: old values would fade"
    WHOLE_NUMBERS = "values are cut to whole numbers, or divided by integer division"
    ROUNDED = "the result is rounded"
    ABSOLUTE = "absolute values are added up"
    SECOND_TIME = "asked for a second time, after one more example, the mean is another than it should be"
    RETURNS = "`add` returns something: it takes in, `avg` says the mean"
    SHARED = "two metrics share what they count: set it in `__init__`, on `self`, not on the class"
    ASKS_THE_TOTAL = "the mean of zeros is 0, not an error: ask whether the count is 0, not the total"


class warmup_factor(Mistake):
    NEVER_STOPS = "it never stops growing: the factor is at most 1"
    ZERO_AFTERWARDS = "after the warm-up it should stay 1, and it is 0"
    FALLS_AFTERWARDS = "after the warm-up it should stay 1, and it falls"
    MAX_FOR_MIN = "it is at least 1, not at most: `min` and `max` are exchanged, or a condition is turned round"
    NO_WARMUP = "there is no warm-up: always 1"
    LATE = "1 is reached a step late: divide by `warmup_steps`, not by one more"
    ONE_AHEAD = "something is added to the step: the first step is 1"
    ONE_BEHIND = "it is one step behind: the first step is 1"
    INTEGER_DIVISION = "the factor is cut to a whole number, as by integer division: it is 0 all the way"
    SQUARE = "it grows as the square of the step, not linearly"
    ROOT = "it grows as the root of the step, not linearly"
    TURNED_ROUND = "the fraction is turned round"
    FALLING = "it falls during the warm-up, and should rise"


class train_epoch(Mistake):
    """Of `evaluate` as well, which returns the same pair."""

    NOT_TRAINING = "the model is not in training mode while it trains: call `model.train()`, or dropout stays off"
    NO_STEP = (
        "no step was taken: is `optimizer.step()` called after `loss.backward()`, and `zero_grad()` not between them?"
    )
    GRADIENTS_KEPT = "the gradients of earlier batches are still there: call `optimizer.zero_grad()` for each batch"
    ASCENT = "the loss grows: the optimizer minimises, so give it the loss without a minus"
    SUMMED = "the loss is summed over the batch, not averaged"
    FIRST_BATCH = "only the first batch is trained on"
    NO_PAIR = "what is returned is no pair (loss, accuracy)"
    EXCHANGED = "loss and accuracy are exchanged: return (loss, accuracy)"
    OVER_BATCHES = "this is the mean over batches, not over examples: a batch counts as often as it has examples"
    LAST_BATCH = (
        "these are the values of the last batch, or of batches after their step: the mean over all is asked for, of "
        "what was trained on"
    )
    AFTER_THE_STEP = "the loss is measured after the step: use the one that was trained on"
    OTHER_OPTIMIZER = "it is not `optimizer` that takes each step, once for each batch: call `optimizer.step()`"
    PROBABILITIES = "the loss is not that of log-probabilities: `F.nll_loss` takes them as the model returns them"
    NOT_CLIPPED = "the gradients are not clipped before the step, or the argument `max_norm` is ignored"
    CLIPPED_BY_VALUE = "each number of the gradient is clipped, not its norm: use `nn.utils.clip_grad_norm_`"
    CLIPPED_APART = (
        "parameters are clipped apart, or some alone: the norm is that of all the model's gradients together, as "
        "`nn.utils.clip_grad_norm_(model.parameters(), max_norm)` takes it"
    )
    SCHEDULER = "the scheduler is not stepped after each step of the optimizer"
    SCHEDULER_FIRST = "the scheduler is stepped before the optimizer, so that each batch gets the next one's rate"


class evaluate(Mistake):
    TRAINING = (
        "the model is in training mode while it is measured, so that dropout spoils the numbers: call `model.eval()`"
    )
    PERCENTAGE = "the accuracy is a percentage: it should be a fraction"
    MODE = "the model is in another mode than before: put back the mode that you found, of all its parts"
    PARAMETERS = "the parameters have changed: measuring must not train"
    GRADIENTS = "the gradients have changed: no `backward` and no `zero_grad` while measuring"
    LEFT_OFF = (
        "torch records no graph any more after the call, so that no model can train: `with torch.no_grad():` ends by "
        "itself"
    )
    FROZEN = (
        "`requires_grad` is another than before, so that other parameters train from now on, or none: leave it alone, "
        "`torch.no_grad()` does not need it"
    )
    GRAPH = "a graph is recorded for gradients that nobody wants, which costs memory: work inside `torch.no_grad()`"


class paired_bootstrap(Mistake):
    NO_TRIPLE = "what is returned is not (difference, low, high)"
    TURNED_ROUND = "the difference is turned round: it is the mean of a minus the mean of b"
    COUNTED = "the right answers are counted: it is a difference of two means"
    MEAN_OF_DRAWS = "the first number comes from the draws: it should be the difference on the examples themselves"
    SIGN_LOST = "an example that b alone gets right counts for a: its difference has lost its sign"
    OUTSIDE = "the interval does not hold the difference"
    NOT_PAIRED = (
        "the shares of the two models do not come from the same draw, which makes the interval too wide: draw once for "
        "both, and take the difference of each draw"
    )
    PERMUTED = (
        "the interval lies around 0: the answers are exchanged between the two models at random, as a permutation test "
        "does, which asks another question; draw examples, and leave each answer to its model"
    )
    MOVED = (
        "the draws are turned round, or moved so that they lie around 0: the ends are percentiles of the draws' own "
        "differences"
    )
    SAMPLES_IGNORED = "`samples` is ignored: of one sample both percentiles are that sample's difference"
    NO_WIDTH = "the interval has no width: draw the examples with replacement, as many as there are"
    ONE_DRAW = "the interval has no width, since one draw serves for all samples: draw anew for each of them"
    SAMPLES_CAPPED = "more samples give the same result: as many are to be drawn as `samples` says"
    DEFAULT_SAMPLES = "the default of `samples` is another than the exercise says"
    OTHER_COUNT = "a draw has another number of examples than there are"
    NEVER_DRAWN = "one of the examples is never drawn: draw from all of them, the first and the last too"
    NINETY_PERCENT = "five percent are left out at each end, which is an interval of 90 %"
    NINETY_NINE_PERCENT = "half a percent is left out at each end, which is an interval of 99 %"
    STANDARD_ERROR = "the ends are so many standard errors away from the middle: take the percentiles of what was drawn"


breaks(Rule.ERRORS, AccumulatingMetric.NOTHING_RAISED)
breaks(Rule.NO_GRAPH, evaluate.GRAPH)
