"""The mistakes that chapter 11's checks know: each has a name that stays, and the sentence that a student reads."""

from autograder.mistakes import Mistake, breaks
from autograder.rules import Rule


class RMSNorm(Mistake):
    START = "`weight` does not start as ones, a number for each feature"
    WEIGHT_UNUSED = "`weight` is not used"
    ONE_PLUS_WEIGHT = "1 + `weight` scales: `weight` starts as ones and scales alone"
    CENTRED = "the mean is subtracted, as in a LayerNorm: RMSNorm leaves it in"
    DEVIATION = "the standard deviation divides: in the root of the mean square the mean is left in"
    UNBIASED_DEVIATION = "the standard deviation divides, over d - 1 at that: `var` and `std` take the mean out"
    SUM = "the sum of the squares is taken, or not divided by d: take their mean"
    NO_ROOT = "the mean square divides, not its root"
    MULTIPLIED = "the root of the mean square multiplies: it divides (`rsqrt` is 1 over the root)"
    ABSOLUTE = "the mean of the absolute values divides: square, mean, root"
    SQUARE_OF_MEAN = "the mean is squared: square first, then take the mean, then the root"
    POSITIONS = "it is normalized over the positions instead of the features"
    WHOLE = "it is normalized over the whole tensor: each position has a mean square of its own"
    KEEPDIM = "the mean loses its dimension, so that a position is divided by the root of another: `keepdim=True`"
    VARIANCE_KEEPDIM = (
        "`var` divides, which takes the mean out; and its result loses its dimension, so that a position is divided by "
        "the root of another's"
    )
    BATCH = "it is normalized over the batch: items of a batch must not touch each other"
    DIMENSION_2 = "it is normalized over dimension 2, which is the last one only where there are three"
    EPS_OUTSIDE = "`eps` is added outside the root: it belongs inside, to the mean square"
    EPS_IGNORED = "the argument `eps` is ignored"
    EPS_DEFAULT = "the default of `eps` is not the one in the signature"
    NO_EPS = "`eps` is left out"
    CUT = "the mean square is cut off from the graph, and it depends on x: no `detach`, no `torch.no_grad()`"
    LIBRARY = "a library's norm does the work: write this exercise with squares, a mean and a root"


class SwiGLU(Mistake):
    ON_UP = "silu is applied to `up(x)`: it belongs to `gate(x)`"
    ON_BOTH = "silu is applied to both: only to `gate(x)`"
    NO_SILU = "silu is missing"
    AFTER_PRODUCT = "silu is applied after the product: it belongs to `gate(x)` alone"
    TWICE = "silu is applied twice, to the gate and to the product"
    SIGMOID = "a sigmoid takes the place of silu (that is GLU): silu(z) is z times sigmoid(z)"
    GELU = "GELU takes the place of silu (that is GeGLU)"
    RELU = "ReLU takes the place of silu (that is ReGLU)"
    ADDED = "the two are added: multiply them"
    UP_UNUSED = "`up` is not used"
    GATE_UNUSED = "`gate` is not used"
    GATE_TWICE = "`gate` is used twice, and `up` never"
    DOWN_UNUSED = "`down` is not used"
    DOWN_FIRST = "`down` is applied to one of the two alone: multiply them first"
    RESIDUAL = "the input is added to the result: the residual connection belongs to the layer"
    FIRST_SEQUENCE = "the first sequence's result is given for the whole batch"


class CausalSelfAttention(Mistake):
    NO_PAIR = "there is no pair where one should be: the output and the new cache, which is keys and values"
    SHARED_WIDTH = "`Wk` and `Wv` do not make `kv_heads` heads, or as many as `heads` where none are given"
    SHARED_APART = "query heads that are neighbours should share keys and values, and here heads share that lie apart"
    COPIES_KEPT = "the cache holds copies: it keeps each of the `kv_heads` heads once"
    HEADS_UNEQUAL = (
        "the heads of keys that are read are not as many as those of queries: each is read by `heads / kv_heads` "
        "neighbouring heads of queries"
    )
    SPLIT_INTO_HEADS = (
        "keys and values are split into `heads` heads: theirs are `kv_heads`, as wide as those of queries"
    )
    NO_MASK = "the causal mask is missing: a position sees those after it"
    MASKED_BY_0 = "what is masked gets a score of 0 before the softmax, and exp(0) is 1: -inf leaves it no weight"
    MASKED_AFTER = (
        "the weights are masked after the softmax, and what is left no longer sums to 1: mask the scores before it"
    )
    OVER_QUERIES = "the softmax is taken over the queries: it is over the keys, the last dimension of the scores"
    NOT_ITSELF = "a position does not see itself: it sees itself and those before it"
    TURNED_ROUND = "the mask is turned round: positions see those after them"
    NEXT_TOO = "each position sees the next one too: it sees itself and those before it"
    NO_MASK_WITH_CACHE = "the new positions see each other without a mask: each sees itself and those before it"
    MASK_OVER_OLDEST = "the new positions' mask is laid over the oldest keys: it begins behind those in the cache"
    NEW_OR_ALL = (
        "with a cache, a size is the number of new positions where it should be that of all so far, or the other way "
        "round: the mask has a row for each new one and a column for every one"
    )
    UNROTATED_KEYS = "the keys are not rotated, or kept before their rotation"
    UNROTATED_QUERIES = "only the keys are rotated: the queries are, too"
    ROTATED_VALUES = "the values are rotated too: they carry content, not position"
    KEYS_AVERAGED = "the weights average the keys: they average the values"
    WRONG_WAY = "the keys are rotated the wrong way"
    OPPOSITE = "queries and keys are turned in opposite directions: both by their positions"
    BEFORE_SPLITTING = "queries and keys are rotated before they are split into heads: turn each head's features"
    HALVES = "features k and k + d/2 are turned together: here it is 2k and 2k + 1"
    FROM_0_AGAIN = "the positions start from 0 again: with a cache of t positions they go on with t"
    FROM_1 = "positions are counted from 1: the first one is 0"
    ANOTHER_T = "the new positions do not go on with t, the number of cached positions: it is the cache's third size"
    TURNED_AGAIN = "keys are turned twice: those in the cache are turned already, so turn only the new ones, once"
    CACHE_UNUSED = "the cache is not used: the new positions see only themselves"
    OLD_LOST = "the older positions are lost from the cache: join the new ones to them"
    JOINED_ASIDE = (
        "`torch.cat` joins along another dimension than that of the positions, which in keys and values is the third"
    )
    JOINED_CROSSWISE = (
        "keys are joined to the cached values, or values to the cached keys: the pair in the cache is `(keys, values)`"
    )
    NEWEST_FIRST = "the newest keys and values come before the older ones: join them behind"
    OWN_CACHE = "the layer goes on from what it kept of its last call: go on from the cache that is handed in"
    VALUES_FIRST = "the cache holds the values first: it is keys, then values"
    MERGED_CACHE = "the heads are merged, or not split, in the cache: it keeps a dimension for them"
    CACHE_CUT_OFF = "no gradient reaches the earlier positions through the cache: no `.detach()`, no `.data`"
    NOT_SCALED = "the scores are not divided by the root of a head's features"
    ALL_FEATURES = (
        "the scores are divided by too much: once, by the root of a head's features (`query_key_weights` does it)"
    )
    ONE_HEAD = "one head does the work of all: split into heads"
    MIXED_BY_VIEW = "the heads are mixed up: `view` cuts positions where it should cut features; transpose afterwards"
    SPLIT_BY_VIEW = (
        "the heads are mixed up where they are split: `view` to (B, n, heads, d/heads), then transpose positions and "
        "heads"
    )
    MERGED_BY_VIEW = "the heads are mixed up where they are merged: transpose before the `reshape`"
    NO_WO = "`WO` is missing"
    QUERIES_BY_WK = "the queries are made with `Wk`"
    KEYS_BY_WQ = "the keys are made with `Wq`"
    EXCHANGED = "`Wk` and `Wv` are exchanged"
    RESIDUAL = "the input is added to the result: the residual connection belongs to the layer"


class LanguageModel(Mistake):
    NO_PAIR = "what is returned is no pair: the logits and the new caches"
    CACHES = "the caches that come back are not a list of one for each layer"
    NOT_TIED = "the output has weights of its own: it is tied to the embedding, and has no bias either"
    CALLED_FOR_LOGITS = (
        "the embedding is called on vectors: called, it looks tokens up; for the logits its `weight` is multiplied by"
    )
    NO_LAYERS = "the layers' parameters are not the module's: a plain list hides them, an `nn.ModuleList` does not"
    SHARED_LAYER = "the layers are one and the same, or there are too few: each has weights of its own"
    DEPTH_IGNORED = "the number of layers is not `depth`"
    HIDDEN_IGNORED = "the layers' networks are not `hidden` features wide"
    LAYER_ARGUMENTS = (
        "a layer refuses the sizes that it is handed: a `Layer` takes `dim, heads, hidden, kv_heads`, in this order"
    )
    EMBEDDING_START = "the embedding does not start with the standard deviation that the exercise says"
    NORM_START = "a norm's `weight` does not start as ones: the small numbers are for the embedding alone"
    NO_LAST_NORM = "the final `norm` is missing"
    NORM_FIRST = "the final `norm` comes before the layers: it follows the last one"
    NORM_AGAIN = "the final `norm` comes before or between the layers too: once, behind the last one, is all"
    RESIDUAL = "the stream is added to what a layer returns: the residual connections are inside the layer"
    SIDE_BY_SIDE = "every layer reads the embeddings: each reads what the one before it returns"
    SCALED_EMBEDDINGS = "the embeddings are multiplied by √dim: here they go in as they are"
    SCALED_LOGITS = "the logits are divided by √dim"
    REVERSED = "the layers run in reverse order"
    FIRST_LAYER_AGAIN = "the first layer is used again and again: each runs once"
    KV_HEADS_IGNORED = "`kv_heads` is not passed on to the layers as it came in"
    HEADS_IGNORED = "`heads` is not passed on: there is one head"
    SOFTMAX = "a softmax is taken of the logits: return scores"
    LOG_SOFTMAX = "the logits are turned into log-probabilities: return scores"
    LAST_ONLY = "there are scores for the last position only: return them for each"
    SEES_FUTURE = "a token changes the scores before it: no position may see a later one"
    CACHES_UNUSED = "the caches are not used: hand each layer its own"
    OWN_CACHES = "the model goes on from what it kept of its last call: go on from the caches that are handed in"
    ANOTHER_CACHE = "a layer gets the cache of another one, or none: hand each layer its own"
    LIST_CHANGED = "the list of caches that was handed in is changed: make a new one"


class perplexity(Mistake):
    LOSS = "this is the mean loss: perplexity is exp of it"
    SUM = "this is exp of the sum: take the mean over the real tokens first"
    SIGN = "the sign is turned round: it is exp of the mean of -log p"
    POWER_OF_2 = "2 is raised to a loss in natural logarithms: use exp"
    SOFTMAX_FIRST = "a softmax comes before the cross-entropy, which takes one itself: give it the logits"
    NO_SOFTMAX = (
        "scores are taken for log-probabilities: `log_softmax` makes these of them, as `cross_entropy` does inside"
    )
    PADDING = "padding counts: leave out the positions whose target is `pad_id`"
    PADDING_ZEROED = "padding is zeroed but still counted: divide by the number of real tokens"
    BY_SENTENCES = "the sum is divided by the number of sentences, not of real tokens"
    MEAN_OF_MEANS = "a mean is taken for each sentence, then the mean of those: every real token counts alike"
    MEAN_OF_PERPLEXITIES = "the mean of the sentences' perplexities: take the mean of all tokens' losses, then exp"
    MEAN_OF_INVERSES = "this is the mean of 1/p: perplexity is exp of the mean of -log p"
    NOT_SHIFTED = "each token is compared with its own scores, not with those of the position before it"
    SHIFTED_BACK = "the scores are compared with the token before them: those at position t are about token t + 1"
    RESHAPED = (
        "`reshape` or `view` cuts the logits anew and mixes the positions: turn the two dimensions by `transpose`"
    )
    TARGETS_FIRST = "the targets are handed over first: `F.cross_entropy` takes the logits, then the targets"
    OF_REAL_ONES = (
        "the prediction behind each real token counts, the one of padding too: what counts is a real *target*"
    )
    PAD_IS_1 = "`pad_id` is taken to be 1: use the argument"
    PAD_IS_0 = "`pad_id` is taken to be 0: use the argument"
    FIRST_COUNTED = "the first token is counted among those predicted: nothing predicts it"
    FIRST_LEFT_OUT = (
        "the first prediction of each row is left out: no scores are about token 0, and those at position 0 are about "
        "token 1, which counts"
    )
    LAST_LEFT_OUT = "the last real token of each sentence is left out: it is predicted too"


class sample_next(Mistake):
    GREEDY = "always the likeliest token: draw"
    NOT_GREEDY = "a temperature of 0 does not give the likeliest token"
    UNIFORM = (
        "all tokens that are left are equally likely: draw by their probabilities, a softmax over the last dimension"
    )
    NO_SOFTMAX = "scores are drawn from as if they were probabilities: a softmax makes these of them"
    MINUS_INF = "-inf is put in the place of a probability: a score may be -inf, a probability that is left out is 0"
    NO_TEMPERATURE = (
        "the temperature has no effect: it is not used, or divides probabilities, where a common factor is lost; "
        "divide the logits"
    )
    SOFTMAX_TWICE = (
        "a softmax is taken of what is probabilities already: the temperature divides the logits, and one softmax "
        "comes at the end"
    )
    MULTIPLIED = "the logits are multiplied by the temperature: divide"
    TOP_K = "`top_k` is not used, or leaves more tokens than it should"
    TOP_P = "`top_p` is not used, or leaves more tokens than it should"
    TOP_K_FEW = "`top_k` leaves fewer tokens than k: the k-th likeliest stays"
    CROSSING = "the token with which the sum crosses `top_p` is left out: it stays"
    LEAST_LIKELY = (
        "the likeliest token is left out, and it is the first to stay: is the order turned round, or what is masked?"
    )
    WARM = "`top_p` reads the probabilities from before the temperature: divide first"
    UNSORTED = "the sum for `top_p` runs over the tokens as they stand: sort them first, from the likeliest down"
    UNORDERED = (
        "places in sorted order are taken for tokens: put what `top_k` or `top_p` leaves back into the order of the "
        "tokens"
    )
    P_OF_ALL = "`top_p` reads the probabilities of all tokens: it reads what `top_k` has left, made to sum to 1 again"
    FIRST_ROW = "the first row's scores are used for all rows"
    FLOATS = "the tokens are no integers"
    OVERFLOW = "`exp` of scores in the thousands overflows: the softmax has to subtract the largest first"
    ONE_FOR_ALL = "one random number decides for several rows: draw one for each"
    BY_POSITION = (
        "the generator is handed over by position, where `torch.multinomial` has `replacement`: "
        "`generator=generator` puts it in its place"
    )


class generate(Mistake):
    NO_PROMPT = "the prompt is left out: the result begins with it"
    COMPUTED_AGAIN = (
        "positions are computed again and again: read the prompt once, then hand on caches and the newest token alone"
    )
    NO_CACHES = "the model sees the newest token alone: hand the caches on too"
    OLD_CACHES = "the prompt's caches are handed on again and again: hand on those that the latest call returned"
    PROMPT_UNREAD = "the model never sees the prompt but for its last token: the first call gets all of it"
    PROMPT_AGAIN = "the model reads the prompt again at every step: after the first call hand it the newest token alone"
    LAST_AGAIN = "the prompt's last token is read twice: the first call's scores tell of the first new token already"
    NO_POSITIONS = "the model gets the newest tokens without a dimension for positions: hand them on as `(B, 1)`"
    ONE_TOO_FEW = "one token too few is written"
    ONE_TOO_MANY = "one token too many is written"
    ONE_ALONE = "one token is written, whatever `length` is: does the `return` stand inside the loop?"
    PROMPT_COUNTED = "the prompt is counted in `length`, which is the number of new tokens"
    FIRST_POSITION = "the scores of an earlier position are read: those of the last one so far tell of the next token"
    JOINED_BELOW = "what is written is joined on as more rows: `torch.cat` along dimension 1 makes the rows longer"
    FIRST_ROW = "the first row's tokens are written to all rows"
    ENDED_GOES_ON = "a row that has ended goes on: fill it with `eos_id`"
    ENDED_FORGOTTEN = "a row that has ended is forgotten at the next step: note which rows have ended, at any step"
    FILLED = "a row that has ended is filled with something else: fill it with `eos_id`"
    ALL_ENDED = "it goes on after all rows have ended"
    FIRST_ENDED = "it stops when the first row has ended: go on until all have"
    LAST_END_LOST = "it stops before the tokens that end the last row are written: append, then stop"
    NO_EOS = "`eos_id` has no effect: a row that has drawn it has ended"
    EOS_OF_0 = "an `eos_id` of 0 is taken for none: ask whether it `is None`"
    EOS_IN_PROMPT = "`eos_id` in the prompt ends a row: only a token that was written does"
    SETTINGS = "the settings do not reach the draw: pass `**sampling` on to `sample_next`"
    SOFTMAX = "a softmax is taken of the scores before `sample_next`, which takes one itself: hand it the logits"
    TEMPERATURE_TWICE = "the temperature acts twice: `sample_next` divides by it, and nobody else should"
    GREEDY = "tokens are never drawn: they are always the likeliest ones"
    ONE_FOR_ALL = "rows with the same scores always get the same token: each row is drawn on its own"
    STEPS_ALIKE = "every step draws the same tokens: do not seed the generator anew"
    GRADIENTS = "gradients are recorded, which keeps every step in memory: use `torch.no_grad()`"


class induction_score(Mistake):
    AT_THE_COPY = "the weight on the earlier copy itself is taken: the score asks for the position behind it"
    BEFORE_THE_COPY = (
        "the weight on the position before the earlier copy is taken: the score asks for the one behind it"
    )
    FIRST_COPY = "the first earlier copy is taken where there are several: the latest one counts"
    ALL_COPIES = "all earlier copies count where there are several: take the latest one alone"
    ITSELF = "a position counts as an earlier copy of itself: only those before it do"
    ADJACENT = "a copy right before its position is left out: it counts, and what lies behind it is the position itself"
    COPY_AT_0 = "a copy at position 0 is left out: 0 is a place like any other"
    ALL_POSITIONS = "positions whose token is new are counted, too: average over those that have an earlier copy"
    NEW_ADDED = (
        "positions whose token is new add the weight that they give to position 0: they count in neither sum nor number"
    )
    NOT_0_ALONE = "positions that give a weight of 0 are left out of the mean: all that have an earlier copy count"
    ALL_HEADS = "a position that has an earlier copy is counted once for each head: count it once"
    TRANSPOSED = "the weights are read the wrong way round: `weights[..., i, j]` is what position i gives to j"
    SUM = "this is a sum: take the mean over the positions that have an earlier copy"
    ROW_BY_ROW = "a mean is taken for each row, then the mean of those: every repeated token counts alike"
    FIRST_ROW = "the first row's tokens decide for the whole batch"
    FIRST_ROW_ALONE = "only the first row counts: does the `return` stand inside the loop over the rows?"
    LAST_ROW_ALONE = "only the last row counts: sum and number start at 0 once, before the loop over the rows"
    ROWS_JOINED = "a row's tokens are taken for copies in the next row: forget what was seen where a row begins"
    NOT_OVER_BATCH = "there is a score for each row: a head has one, over the whole batch"
    OVER_HEADS = "the heads are averaged: each has a score of its own"
    NOTHING_REPEATED = "where no token comes back 0 is divided by 0: then the score is 0"


breaks(Rule.START, RMSNorm.START, LanguageModel.EMBEDDING_START, LanguageModel.NORM_START)
breaks(Rule.NO_GRAPH, generate.GRADIENTS)
breaks(Rule.EFFORT, generate.COMPUTED_AGAIN)
breaks(Rule.LARGE, sample_next.OVERFLOW)
