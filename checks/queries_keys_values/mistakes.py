"""The mistakes that chapter 03's checks know: each has a name that stays, and the sentence that a student reads."""

from autograder.mistakes import Mistake, breaks
from autograder.rules import Rule


class noun_finder(Mistake):
    NOT_THREE = "what is returned is not three matrices, Wq, Wk and Wv"
    ROWS = "a matrix does not have 3 + num_words rows, one for each feature of a word"
    UNEQUAL_COLUMNS = "Wq and Wk do not have the same number of columns, so that queries and keys cannot be compared"
    VALUE_COLUMNS = "Wv does not have `num_words` columns: a value is the one-hot of a word"
    NOT_FINITE = "the output is NaN: keep the numbers finite, and not too large for a softmax"
    NOT_ONE_HOT = "the values are not one-hots: Wv should pass on the last num_words features as they are, and no other"
    EXCHANGED = "queries and keys are exchanged: what Wq asks for has to be what Wk offers, and not the other way round"
    TOO_SMALL = (
        "the design is right and its numbers are too small: only differences of scores count, and these leave the "
        "right word too little of the weight"
    )
    NOUNS_ALIKE = "every noun finds all nouns alike: what tells one noun from another is its one-hot part"
    NOUN_LOST = "a noun takes from words that are no nouns: what makes it find itself is its one-hot part"
    TIED = (
        "an adjective or a verb finds itself and its noun: asking for `is_noun` has to win clearly over fitting its "
        "own one-hot"
    )
    FINDS_ITSELF = "an adjective or a verb finds itself: asking for `is_noun` has to win over fitting its own one-hot"
    FINDS_NO_NOUN = "an adjective or a verb finds a word that is no noun: what does its row of Wq ask for?"
    SPREAD = "the weights of an adjective or a verb are spread over the sentence: nothing makes its noun stand out"


class padding_mask(Mistake):
    NOT_BOOLEAN = "the mask is not boolean: comparing gives one"
    INVERTED = "the mask is inverted: True means `may be attended to`"
    NO_DIMENSION = "the shape is (B, m): a dimension of size 1 is missing for the queries"
    LAST = "the dimension of size 1 is last: it belongs in the middle, (B, 1, m)"
    FIRST = "the dimension of size 1 is first: it belongs in the middle, (B, 1, m)"
    ROW_FOR_EACH = "each sentence has m rows: one is enough, broadcasting does the rest"
    QUERIES_TOO = "pads are blocked as queries too, in m rows for each sentence: only what is looked at counts, the key"
    TOO_MANY_DIMENSIONS = "there is a dimension too many: the shape is (B, 1, m), and heads come in chapter 4"
    ZERO = "token 0 is taken for padding, and here it is a real one: padding is `pad_id`"
    ONE = "token 1 is taken for padding, whatever `pad_id` says"
    BELOW = "numbers below `pad_id` are blocked too: only `pad_id` itself is padding"
    FIRST_ITEM = "item 0's mask is used for all"
    BEHIND_A_PAD = "what follows a pad is blocked: padding may stand on the left"
    COUNTED = "real tokens are counted and taken from the left: padding may stand on the left"


class causal_mask(Mistake):
    NOT_BOOLEAN = "the mask is not boolean: pass `dtype=torch.bool`, or compare"
    UPSIDE_DOWN = "the mask is upside down: row i is the query, column j the key, and j <= i is allowed"
    NO_DIAGONAL = "the diagonal is blocked: each position may look at itself"
    INVERTED = "the mask is inverted: True means `may be attended to`"
    ONE_TOO_FAR = "position 0 may look at position 1, its future"
    EVERYTHING = "everything is allowed, the future too"
    ONLY_ITSELF = "each position sees only itself: all that came before is allowed"
    TOO_MANY_DIMENSIONS = "there is a dimension too many: the shape is (n, n)"
    ONE_ROW = "there is one row only: the shape is (n, n)"


class query_key_weights(Mistake):
    """Of everything that computes attention: the weights, the output, the tiles."""

    NOT_SCALED = "the dot products are not divided: √d is missing"
    DIVIDED_BY_D = "the scores are divided by d, not by its root"
    ROOT_OF_KEYS = "the scores are divided by the root of m, the number of keys: d is the last size of the queries"
    ROOT_OF_QUERIES = "the scores are divided by the root of n or B: d is the last size of the queries"
    ROOT_OF_SECOND_SIZE = "the scores are divided by the root of the second size: d is the last, also with heads"
    MULTIPLIED = "the scores are multiplied by √d"
    ALWAYS_2 = "the scores are divided by 2, whatever d is"
    HALF_OF_D = "the scores are divided by d / 2: `d ** 1 / 2` is `(d ** 1) / 2`, and the root is `d ** 0.5`"
    COLUMNS = "each column sums to 1, but each row should: the softmax runs over the queries"
    OVER_BATCH = "the softmax runs over the batch, where F.softmax goes without a `dim`"
    NO_SOFTMAX = "the softmax is missing: these are the scores"
    SCALED_LATER = "the scale comes after the softmax"
    FIRST_KEYS = "item 0's keys are used for all"
    FIRST_WEIGHTS = "item 0's weights are used for all"
    SWAPPED = "queries and keys are swapped: a row belongs to a query"
    RESHAPED = "the keys are reshaped, which cuts their rows elsewhere: they should be transposed"
    DROPOUT = "two calls with the same inputs differ: there is dropout inside"
    FROM_THE_LEFT = (
        "it works for three dimensions and not for others: count dimensions from the right, with `[-1]`, `.mT`, "
        "`@`, or "
        "`...` in an einsum"
    )
    OVERFLOW = "scores in the thousands overflow: the softmax has to subtract the largest"
    MASK_UNUSED = "the mask has no effect"
    MASK_INVERTED = (
        "the mask is used the wrong way round: True means `may be attended to`, and masked_fill fills where it finds "
        "True"
    )
    MASK_ADDED = "the boolean mask is added to the scores: True counts as 1 there, so nothing is blocked"
    FILL_NEAR_ZERO = "blocked scores are set to a number near 0, and exp(0) = 1"
    AFTER_SOFTMAX = "the weights are set to 0 after the softmax, so that rows no longer sum to 1"
    RENORMALISED = (
        "blocked weights are set to 0 after the exponentials, and what is left is divided by its sum: a large blocked "
        "score still takes the others' weight away, or makes them NaN; and a row that may attend to nothing sums to 0"
    )
    LOWERED = "blocked scores are lowered by a number, and a large one is still in front: set them to a low number"
    EMPTY_ROW_NAN = "a row that may attend to nothing is NaN: all its scores are -inf, and softmax divides 0 by 0"
    EMPTY_ROW_EQUAL = (
        "a row that may attend to nothing gets weights: when every score is filled alike, with -1e10 for instance, "
        "softmax shares the weight among them"
    )
    GRADIENT_NAN = (
        "the values are right, but the gradient is NaN where a row may attend to nothing: a NaN was made on the "
        "way and "
        "swept up afterwards"
    )
    NOT_LOW_ENOUGH = (
        "the fill is not low enough: real scores may be lower, and the dtype itself knows its lowest number"
    )
    TOO_LOW = "the fill does not fit into every dtype: the lowest number that each has itself does, and so does -inf"
    FIRST_MASK = "batch item 0's mask is used for all"
    FIRST_HEADS_MASK = "the mask of head 0 is used for all heads"
    ONE_HEAD_MASKED = "the mask acts on head 0 only"


class scaled_dot_product_attention(Mistake):
    NOT_TWO = "what is returned is not two things, the output and the weights"
    EXCHANGED = "the two are swapped: the output comes first"
    KEYS_AVERAGED = "the keys are averaged, not the values"
    VALUES_FOR_KEYS = "the values take the place of the keys"
    OVER_QUERIES = "the softmax runs over the queries"
    SCALED_AGAIN = "the output is divided by √d once more"
    INPUT_ADDED = "the input is added to the output"
    FIRST_VALUES = "batch item 0's values are used for all"
    FIRST_HEAD = "head 0's weights are used for all heads"
    SCORES_RETURNED = "the scores are returned in place of the weights"
    OUTPUT_UNMASKED = "the mask has no effect on the output"


class diagnose(Mistake):
    NO_NAME = "what is returned is none of the six names"
    ACCUSES = "a right attention is accused of a fault: compare with a tolerance, and ask for no more than is promised"
    MISSES_FILL = "a fill near 0 is not told from what is right: does your mask block anything?"
    MISSES_ROOT = "the root of the wrong size is not told from what is right: do d, h · d, n, m, d_v and B all differ?"
    MISSES_AXIS = "a softmax over the wrong axis is not told from what is right: what do your weights sum to?"
    MISSES_VIEW = "keys reshaped in place of transposed are not told from what is right: do your keys have an order?"
    MISSES_ROWS = (
        "a maximum over all rows is not told from what is right: does one of your rows score far below the rest?"
    )
    CONFUSES = "a fault is noticed and taken for another one: what does each do that no other does?"


class attention_in_tiles(Mistake):
    NOTHING_RESCALED = "neither the sum nor the output so far is rescaled when a later tile raises the maximum"
    SUM_NOT_RESCALED = "the sum so far is not rescaled when a later tile raises the maximum"
    OUTPUT_NOT_RESCALED = "the output so far is not rescaled when a later tile raises the maximum"
    RESCALED_UP = (
        "what was added up before is multiplied by exp(new - old) when a later tile raises the maximum: it has to "
        "shrink, by exp(old - new)"
    )
    AVERAGED = (
        "each tile has its own softmax, and the results are averaged: a tile with high scores must count for more"
    )
    ADDED = "each tile has its own softmax, and the results are added"
    ONLY_LAST = "only the last tile counts"
    LAST_DROPPED = "the last tile is dropped when it is not full"
    NOT_DIVIDED = "the division by the sum is missing"
    ROOT_OF_VALUES = "the scores are divided by the root of d_v, the values' last size: d is that of the queries"
    ROOT_OF_TILE = "the result depends on the tile: it should be that of the full table, whatever the tiles"
    MAXIMUM_AT_0 = (
        "very low scores give NaN: no maximum is subtracted, or the running maximum begins at 0, or at another number "
        "that is higher than every score, so that all exponentials are 0"
    )
    OWN_MAXIMUM = (
        "high scores that are followed by low ones give NaN: each tile measures from its own maximum, and the running "
        "maximum must never fall"
    )
    WHOLE_TENSOR = "one maximum serves all queries: each has a running maximum of its own"
    TABLE = "more scores are held at once than a tile has: multiply the queries with one slice of the keys at a time"
    TILES_COUNTED = "`tile` is taken for the number of tiles: it is how many keys each has (`split`, not `chunk`)"
    KEPT = "something of each tile is kept for later: keep only the running maximum, sum and output"
    READ_TWICE = "the keys are read more than once: a maximum that runs along needs each tile one time only"
    FUSED = "the library's attention does the work: the tiles are to be your own"


breaks(Rule.MEMORY, attention_in_tiles.TABLE, attention_in_tiles.TILES_COUNTED, attention_in_tiles.KEPT)
breaks(Rule.EFFORT, attention_in_tiles.READ_TWICE)
breaks(Rule.LARGE, query_key_weights.OVERFLOW)
