"""The mistakes that chapter 08's checks know: each has a name that stays, and the sentence that a student reads."""

from autograder.mistakes import Mistake, breaks
from autograder.rules import Rule


class GRUEncoder(Mistake):
    EMBEDDING = "`embedding` is not as the docstring says, in name or sizes: tokens are its rows, features its columns"
    ONE_DIRECTION = "`gru` reads in one direction only: make it `bidirectional`"
    TWO_LAYERS = "`gru` has two layers: one is asked"
    OTHER_GRU = "`gru` is not as the docstring says, in name, kind, sizes or bias"
    FC = "`fc` is not as the docstring says, in name, sizes or bias: from both directions to the decoder's size"
    NOT_TWO = "what is returned is not a pair: return `(outputs, hidden)`"
    EXCHANGED = "hidden and outputs are exchanged: return `(outputs, hidden)`"
    READS_PADDING = (
        "the GRU reads padding too: pack the sequence with `pack_padded_sequence`, and give it `lengths` as they are"
    )
    ZEROED_AFTERWARDS = (
        "the GRU reads the padding too, and zeroing the outputs afterwards is too late: the backward direction starts "
        "in the padding"
    )
    NO_TOTAL_LENGTH = (
        "the outputs are only as long as the longest sentence: give `pad_packed_sequence` a `total_length`"
    )
    TOKEN_LOST = "the lengths are off by one: each sentence loses its last token"
    FIRST_LENGTH = "the length of one sentence is used for all"
    STAY_SORTED = (
        "the sentences come back sorted by length: put them back into their order, or leave the sorting to "
        "`enforce_sorted=False`"
    )
    PADDING_BY_NUMBER = "padding is told by its token number: what is real, `lengths` says"
    PACKED_TIME_FIRST = "batch and positions are exchanged: `pack_padded_sequence` needs `batch_first=True`"
    TIME_FIRST = "batch and positions are exchanged: whatever packs, reads or unpacks needs `batch_first=True`"
    UNPACKED_TIME_FIRST = "batch and positions are exchanged: `pad_packed_sequence` needs `batch_first=True` too"
    BACKWARD_OUTPUTS_FIRST = "in the outputs the backward direction comes first: the forward states go first"
    ADDED = "the two directions are added up: they belong side by side"
    NO_TANH = "the tanh is missing: it follows `fc`"
    RELU = "a ReLU stands where the tanh should"
    SIGMOID = "a sigmoid stands where the tanh should"
    TANH_BEFORE = "the tanh comes before `fc`: it belongs after it"
    BACKWARD_FIRST = "the backward state comes first: what goes into `fc` is [forward; backward]"
    FORWARD_TWICE = "the forward state stands there twice, the backward one nowhere"
    BACKWARD_TWICE = "the backward state stands there twice, the forward one nowhere"
    LAST_POSITION = (
        "the outputs at a position behind the last token are used, which is padding: the GRU returns the last states"
    )
    LAST_TOKEN = "the output at the last real token is used, where the backward direction has read one token only"
    FIRST_TOKEN = "the output at the first token is used, where the forward direction has read one token only"
    MEAN = "the mean of the outputs is used: it should be the last states"
    RESHAPED = (
        "the states of different sentences are mixed: (2, B, encoder_hidden) must not be reshaped to (B, …); put the "
        "two directions side by side"
    )
    ONE_HALF = (
        "`fc` gets the features of one direction only: put both last states side by side, with `torch.cat` along the "
        "last dimension"
    )
    NO_FC = "`fc` is left out"
    DIMENSION_TOO_MANY = "there is one dimension too many: the decoder wants (B, decoder_hidden)"
    NO_DROPOUT = "the token vectors do not pass through `dropout`"
    DROPOUT_ON_OUTPUTS = "the dropout acts on the outputs: it belongs on the token vectors"
    DROPOUT_TWICE = "the token vectors go through the dropout twice: once is enough"
    PADDING_ROW = "`embedding` has a `padding_idx`, so that one vector never learns: a token may have any number"


class AdditiveAttention(Mistake):
    FC1 = "`fc1` is not as the docstring says, in name, sizes or bias: the state and one output, side by side, go in"
    FC2 = "`fc2` is not as the docstring says, in name, sizes or bias: one score for each source token comes out"
    BIAS = "`fc2` has a bias: it would change no weight"
    MASK_IGNORED = "the mask is ignored: padding gets weight"
    MASK_INVERTED = "the mask is turned round: True means a real token"
    FILLED_WITH_ZERO = "padding gets a score of about 0 before the softmax, and exp(0) is 1, not 0"
    NOT_LOW_ENOUGH = (
        "the padding is filled with a number that is not low enough, or `exp` is taken without the maximum: scores may "
        "lie far below 0"
    )
    MASKED_AFTERWARDS = "the mask is applied after the softmax, so that the rows no longer sum to 1"
    RENORMALISED = (
        "the mask is applied after the softmax, and what is left is divided by its sum: where padding scores far "
        "higher than the words, nothing is left"
    )
    FIRST_MASK = "the mask of the first sentence is used for all"
    EMPTY_ROW = "a row without real tokens gets weights: they should all be 0"
    PADDING_NOT_ZERO = "the weight of padding is small, but not exactly 0"
    NO_TANH = "the tanh is missing: without it two linear layers are only one"
    RELU = "a ReLU stands where the tanh should"
    SIGMOID = "a sigmoid stands where the tanh should"
    TANH_AFTER = "the tanh comes after `fc2`: it belongs between the layers"
    SECOND_TANH = "there is a second tanh, after `fc2`"
    OUTPUT_FIRST = "the output comes first: `fc1` takes [hidden; output], in this order"
    NO_SOFTMAX = "these are the scores: the softmax is missing"
    SOFTMAX_OVER_BATCH = "the softmax runs over the batch: it belongs over the source tokens"
    SOFTMAX_OVER_ONE = "the softmax runs over a dimension of size 1, so that every weight is 1"
    LOG_SOFTMAX = "these are log-weights: a log-softmax stands where the softmax should"
    SIGMOID_WEIGHTS = "each score has a sigmoid of its own: the weights of a sentence compete in one softmax"
    SCALED = "the scores are divided by a root: additive attention needs no scale"
    STATES_MIXED = "the states of different sentences are mixed: make the dimension of the positions first, then repeat"
    FIRST_STATE = "the decoder's state of the first sentence is used for all"
    FIRST_WEIGHTS = "the weights of the first sentence are used for all"
    STATE_UNUSED = (
        "the decoder's state has no effect on the weights: it is not used, or the tanh comes before `fc1`, so that its "
        "share cancels in the softmax"
    )
    COLUMN = "the weights come as (B, m, 1): take the last dimension away"
    ROW = "the weights come as (B, 1, m): the decoder wants (B, m)"


class GRUDecoder(Mistake):
    EMBEDDING = "`embedding` is not as the docstring says, in name or sizes: tokens are its rows, features its columns"
    GRU = "`gru` is not as the docstring says, in name, kind, sizes or bias: vector and context go in"
    FC = "`fc` is not as the docstring says, in name, sizes or bias: the new state, the context and the vector go in"
    ATTENTION = "there is no AdditiveAttention called `attention`, or it is made for other sizes"
    NOT_THREE = "what is returned is not three things: return `(logits, hidden, weights)`"
    ORDER = "the results are in another order: return `(logits, hidden, weights)`"
    LOGITS_SHAPE = "the logits have a dimension too many or too few: they are (B, vocab_size)"
    HIDDEN_SHAPE = "the state has a dimension too many or too few: it is (B, decoder_hidden)"
    WEIGHTS_SHAPE = "the weights have a dimension too many or too few: they are (B, m)"
    SQUEEZED = "a `squeeze()` without a dimension takes the batch away, too, when it has one sentence only"
    ATTENTION_EXCHANGED = (
        "the attention gets its arguments in another order: it takes `(hidden, encoder_outputs, mask)`"
    )
    MASK_LOST = "the mask does not reach the attention"
    MASK_INVERTED = "the mask reaches the attention turned round"
    LOOKS_TOO_LATE = "the weights come from the state after the GRU: attend first, with the state that came in"
    CONTEXT_FIRST = "the context comes before the token vector: the GRU takes [vector; context]"
    NO_MEMORY = "the GRU starts from zeros: without `hidden` it forgets what was written"
    OLD_STATE_RETURNED = "the state that came in is returned: it should be the one after the GRU"
    OLD_STATE_SPOKEN = "`fc` sees the old state: give it the one after the GRU"
    FC_ORDER = "`fc` gets its parts in another order: it takes [new hidden; context; vector]"
    PLAIN_MEAN = "the context is the plain mean of the encoder's outputs: the weights are not used"
    PLAIN_SUM = "the context is the plain sum of the encoder's outputs: the weights are not used"
    LAST_OUTPUT = "the context is the encoder's last output: the weights are not used"
    BEST_ONLY = (
        "the context is one output alone, that with the largest weight or the first: it should be the weighted average"
    )
    AVERAGED = "the weighted outputs are averaged: the weights sum to 1, so that their sum is the average already"
    FIRST_WEIGHTS = "the context is made with the weights of the first sentence for all"
    FIRST_OUTPUTS = "the context is made from the outputs of the first sentence for all"
    SOFTMAX_TWICE = "the weights go through a second softmax"
    PROBABILITIES = "probabilities are returned: leave out the softmax"
    LOG_PROBABILITIES = "log-probabilities are returned: the loss takes the log-softmax itself"
    TANH = "a tanh follows `fc`"
    RELU = "a ReLU follows `fc`"
    NO_DROPOUT = "the token vector does not pass through `dropout`"
    VECTOR_BEFORE_DROPOUT = "`fc` sees the token vector before the dropout"
    VECTOR_DRAWN_TWICE = (
        "the token vector goes through the dropout twice: make it once, and give the same one to the GRU and to `fc`"
    )
    DROPOUT_ON_MORE = "the dropout acts on more than the token vector: the context and the states go on as they are"
    PADDING_ROW = "`embedding` has a `padding_idx`, so that one vector never learns: a token may have any number"
    WEIGHTS_CUT_OFF = (
        "the attention is cut off from the graph, so that it cannot learn: detach neither its weights nor what goes in"
    )


class Seq2Seq(Mistake):
    """Of all that writes token by token."""

    PARTS_HIDDEN = "torch does not see a part of the model, so that it is not trained: make each part an attribute"
    PARTS_RENAMED = "the parts have other names than the docstring says: `encoder` and `decoder`"
    REVERSED = "the choice is reversed: where the true token should be fed, it is the decoder's own"
    ALWAYS_TRUTH = "`teacher_forcing` is not used: the true token is always fed"
    ALWAYS_OWN = "`teacher_forcing` is not used: the decoder's own token is always fed"
    ALWAYS_SOS = "`<sos>` is fed at every step"
    OWN_NEVER_FED = "the decoder's own token is never fed: where the true one is not, its best guess belongs"
    FED_THE_ANSWER = (
        "the token that a step is asked for is fed to it, so that it has only to copy: feed the token of position t "
        "after the step that scores it"
    )
    SOS_SCORED = "position 0 is scored, so that `<sos>` is fed twice: the loop starts at 1"
    ZEROS_IN_FRONT = "there is a step too many in front, with logits of zeros: return positions 1 to n - 1"
    STEP_TOO_MANY = "there is a step too many at the end: a target of n tokens takes n - 1 steps"
    LATE = (
        "`<sos>` is fed twice, so that each true token comes a step late: after the step that scores position t, feed "
        "the token of position t"
    )
    STEP_MISSING = "a step is missing: a target of n tokens takes n - 1 steps"
    NOT_CARRIED = "the state is not handed from step to step: the decoder starts anew each time"
    FROM_ZEROS = "the decoder starts from zeros: give it the encoder's hidden state"
    MASK_ALL_TRUE = "the mask is all True: the decoder attends to padding"
    MASK_INVERTED = "the mask is turned round: True means a real token"
    MASK_BY_NUMBER = "the mask is made of token numbers: padding is what lies behind `lengths`"
    MASK_TOO_LONG = "the mask is off by one: it lets the first position of the padding through"
    MASK_TOO_SHORT = "the mask is off by one: it misses the last real token"
    MASK_SHORTER_THAN_SOURCE = "the mask is only as long as the longest sentence: make it as long as the source"
    FIRST_MASK = "the mask of one sentence is used for all"
    STACKED_FIRST = "the logits come as (n - 1, B, vocab_size): stack them along dimension 1"
    STACKED_LAST = "the logits come as (B, vocab_size, n - 1): stack them along dimension 1"
    END_TO_END = "the steps are put end to end: `stack` them along a new dimension, `cat` makes none"
    SIDE_BY_SIDE = "the steps are put side by side: `stack` them along a new dimension, `cat` makes none"
    LAST_STEP_ONLY = "only the last step is returned"
    TOKENS = "tokens are returned, not their logits"
    PROBABILITIES = "probabilities are returned, not logits"
    LOG_PROBABILITIES = "log-probabilities are returned, not logits"
    LEAST_LIKELY = "the decoder's own token is the least likely one: `argmax`, not `argmin`"
    SAMPLED = "the decoder's own token is drawn by chance: it should be its best guess"
    BEST_OVER_BATCH = "the largest logit is looked for over the batch: it belongs over the vocabulary"
    BEST_OF_ALL = "`argmax()` without a dimension gives one number for the whole batch"
    ROW_OF_TARGET = (
        "a row of `target` is fed, one sentence with all its positions: position t of every sentence is a column"
    )
    OTHER_TOKENS = "a step is fed tokens of another shape: it takes one for each sentence, (B,)"
    CHOSEN_ONCE = "steps choose alike, as if there were one choice for all: choose anew at each step"
    MODE_DECIDES = "the mode decides what is fed: in evaluation, too, `teacher_forcing` alone should"
    STICKS = "choices hang together: each step draws its own, whatever the one before it drew"
    NO_CHOICE = "a step always feeds the same kind of token: each step after the first makes a choice"
    REPEATS = "the choices repeat after a few steps: draw a new number at each step"
    OTHER_SHARE = "the true token is fed with another probability than `teacher_forcing`"
    OTHER_DEFAULT = "where no `teacher_forcing` is given, the true token is fed with another probability than a half"


class check_teacher_forcing(Mistake):
    REJECTS_RIGHT = (
        "your test rejects a right model: ask for no more than the specification, and leave room for rounding"
    )
    STOPS = "your test stops with an error of its own, not with a verdict, when it meets a right model"
    CRASHES = (
        "a broken model makes your test stop with another error: an error that a model raises is a reason to reject "
        "it, by an AssertionError"
    )
    RETURNS = "your test returns its verdict: a test speaks by `assert`"
    ACCEPTS_BROKEN = "your test accepts a broken model"
    ACCEPTS_ALL = (
        "your test accepts every broken model: it should compare what a model writes with something of its own"
    )
    # A test's worst blind spot is named, of equal ones the first.
    MISSES_STATE = "your test lets models pass that lose the state or the encoder's outputs on the way"
    MISSES_MASK = "your test lets models pass whose mask is wrong"
    MISSES_POSITIONS = "your test lets models pass that mix up positions of the target"
    MISSES_GUESS = "your test lets models pass whose own token is not their best guess"
    MISSES_CHOICE = "your test lets models pass that choose wrongly between the true token and their own"
    MISSES_GENERATOR = "your test lets models pass whose choices do not come from the generator that is given"
    MISSES_RESULT = "your test lets models pass that return something else than logits, or in another order"
    MISSES_EFFECTS = "your test lets models pass that write the right logits, but cannot learn or spoil their inputs"


class effect_of_erasing(Mistake):
    RISE = (
        "the sign is turned round: a token that matters has a positive effect, since its loss makes others less likely"
    )
    LOGITS = "these are differences of logits: take the log-softmax first"
    BEST_GUESS = "the chances of the model's best guess are compared: it should be those of the true token"
    SIGN_LOST = "the sign is lost: a token that speaks against the true one has a negative effect"
    PROBABILITIES = "these are differences of probabilities: the logarithm is missing"
    NOT_SHIFTED = "the logits are read at the wrong tokens: those at t score the target's token t + 1"
    NOT_PUT_BACK = "the tokens stay erased: each effect is that of one token alone"
    NOTHING_FALLS = (
        "nothing has any effect: the model is not in evaluation, not forced, or does not get the erased source, or the "
        "log-softmax does not run over the words"
    )
    TRANSPOSED = "source and target are exchanged: the result is (B, n - 1, m)"
    SUMMED = "the effects are summed over the target: each of its tokens has its own"
    MODE = "the model is left in another mode than it was found in, it or a part of it"
    GRAPH = "the result drags the graph of every call along: measure without gradients"


breaks(Rule.LARGE, AdditiveAttention.NOT_LOW_ENOUGH)
breaks(Rule.NO_GRAPH, effect_of_erasing.GRAPH)
