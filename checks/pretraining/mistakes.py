"""The mistakes that chapter 12's checks know: each has a name that stays, and the sentence that a student reads."""

from autograder.mistakes import Mistake, breaks
from autograder.rules import Rule


class pack(Mistake):
    NO_EOS = "there is no `eos_id` between the texts: it follows each of them"
    EOS_FIRST = "`eos_id` comes before the first text: it follows each text"
    EOS_BETWEEN = (
        "the last block, which is just full, is missing: `eos_id` follows the last text, too, and only what fills no "
        "block is dropped"
    )
    FULL_LOST = "where the tokens just fill the blocks, none is left: `[:-0]` of a list is an empty one"
    END_UNASKED = (
        "a block that an `eos_id` fills is never closed: ask after each token whether it is full, `eos_id` too"
    )
    EOS_ONCE = "`eos_id` comes once, behind all texts together: it follows each of them"
    EOS_FIXED = "another number than `eos_id` ends the texts"
    EMPTY_LOST = "a text without tokens is passed over: its `eos_id` is there all the same"
    SHORT_LOST = "texts that fill no block by themselves are left out: join all texts first"
    TEXT_BY_TEXT = "each text is cut by itself, and its own rest is lost: join the texts first"
    REST_KEPT = "the rest that fills no block is kept: it is dropped"
    FRONT_DROPPED = "tokens are dropped at the front: what is left over is at the end"
    BLOCK_LOST = "a full block is dropped: only what fills none goes"
    COLUMNS = "the text runs down the columns: each row is a stretch of it"
    OVERLAP = "the blocks overlap: each token is in one of them"
    EMPTY_FLOAT = "of an empty list `torch.tensor` cannot tell that it is one of integers: say `dtype=torch.int64`"
    ROWS_CHANGED = (
        "the lists that were handed in are changed: `append`, `+=` and `extend` write into the caller's lists"
    )


class mask_tokens(Mistake):
    NO_PAIR = "what is returned is no pair: the tokens to read, and which of them are to be guessed"
    OTHER_ORDER = "the pair is turned round: the tokens to read come first, and which of them are to be guessed second"
    LABELS = (
        "`chosen` holds tokens, places or labels such as -100: it is True where a token is to be guessed, and False "
        "elsewhere"
    )
    LIST_GIVEN = "`torch.isin` looks things up in a tensor, and `special_ids` is a list: `torch.tensor` makes one of it"
    GENERATOR_BY_PLACE = (
        "`torch.rand` and the others that draw do not take the generator by its place: write `generator=generator`"
    )
    SHARE = "the share of the positions that is chosen is not `share`"
    SHARE_DEFAULT = "the default of `share` is not the one in the signature"
    SPECIAL_CHOSEN = "special tokens are chosen: those of `special_ids` never are"
    SPECIAL_DRAWN = "special tokens are put in others' places: draw from those that are not special"
    FIRST_IDS = (
        "the special tokens are taken to be the first numbers of the vocabulary: `special_ids` says which they are"
    )
    OUTSIDE = "a token is put in that the vocabulary does not have: its tokens are 0 to `vocab_size - 1`"
    OTHERS_CHANGED = "tokens that were not chosen are changed"
    ALWAYS_MASK = (
        "every chosen token becomes `mask_id`: draw a fate for each, so that some become another token, and some stay"
    )
    NONE_STAYS = "no chosen token stays as it is"
    NONE_ANOTHER = "no chosen token becomes another one than `mask_id`"
    NEVER_MASK = "no chosen token becomes `mask_id`"
    FATES = "the chosen tokens' three fates do not have the shares of the text"
    STAYING_LEFT_OUT = "the chosen tokens that stay are not in `chosen`: they are to be guessed, too"
    ONLY_MASKED = (
        "only those that became `mask_id` are in `chosen`: those that become another token, and those that stay, are "
        "to be guessed, too"
    )
    TURNED_ROUND = "`chosen` is turned round: it is True where a token is to be guessed"
    SAME_PLACES = "the same places are chosen in every row: each row is drawn by itself"
    ALWAYS_AS_MANY = "a fixed number of positions is chosen: each is drawn by itself"
    ONE_TOKEN = "one random token takes every place: draw one for each"
    TOKENS_MISSING = "some tokens of the vocabulary are never put in another's place"
    UNEVEN = (
        "some tokens are put in another's place oftener than others: all that are not special are equally likely to be "
        "drawn"
    )
    TOGETHER = "neighbours are chosen together: each position is drawn by itself"
    FATES_TOGETHER = "neighbours have one fate together: draw one for each chosen token"
    DEALT = "the fates are dealt out in fixed numbers: each chosen token has its own, on its own"


class ReviewClassifier(Mistake):
    SCORES = "these are scores: take their log-softmax"
    PROBABILITIES = "these are probabilities: log-probabilities are asked for"
    OVER_BATCH = "the softmax is taken over the batch: its dimension is that of the classes"
    MEAN_OVER_PADDING = "padding counts in the mean: average over the real tokens"
    TURNED_ROUND = "the mean is taken over the padding: take it over the real tokens"
    DIVIDED_BY_N = "the sum over real tokens is divided by n, not by how many they are"
    FIRST_POSITION = "the first position is taken for the text: average over all real ones"
    LAST_POSITION = "the last position is taken for the text: average over all real ones"
    LARGEST = "the maximum is taken over the positions: take the mean"
    SUM = "the sum is taken over the positions: take the mean"
    AVERAGED_LATE = "log-probabilities are averaged over the positions: average the vectors, then judge once"
    SCORES_AVERAGED = (
        "scores are averaged over the positions, so that a text of padding alone has none, not even the bias: average "
        "the vectors, then judge"
    )
    PAD_IS_1 = "`pad_id` is taken to be 1: use the argument"
    PAD_IS_0 = "`pad_id` is taken to be 0: use the argument"
    BODY_COPIED = "the classifier has a copy of the body: keep the one that was handed in"
    BODY_FROZEN = "the body that was handed in no longer learns: whoever tunes it decides what is frozen"
    OTHER_TOKENS = (
        "the body is handed another number in the place of padding: give it the tokens as they are, since it may look "
        "at all that are real"
    )
    BODY_LEFT_OUT = "the body's parameters are not the classifier's: keep the body as `self.body`"
    EMPTY_ROW = "a text of nothing but padding gives NaN"


class layer_rates(Mistake):
    NO_GROUPS = "what is returned is no list of groups, each a dictionary with `params` and `lr`"
    NO_PARAMETERS = (
        "`params` holds what is no parameter of the model: a name, a pair of name and parameter, a module or a copy"
    )
    MISSING = "a parameter is in no group, so that it never learns"
    FROZEN_LEFT_OUT = "a frozen parameter is in no group: each parameter of the model is in one, frozen or not"
    TWICE = "a parameter is in more than one place"
    COMPARED = "two parameters are compared by their numbers, as `in` does it: compare names, or `id(parameter)`"
    HEAD = "the head's rate is not `rate`"
    ALL_ALIKE = "all rates are equal: each layer has `decay` times that of the one above"
    UPSIDE_DOWN = "the rates fall from the bottom to the top: the head has the highest"
    BLOCKS_TURNED = "the blocks are counted from the bottom: the last one is the highest, right below the head"
    LAST_BLOCK = "the last block has the head's rate: it is a layer below"
    EMBEDDING = "the embedding has the rate of the first block: it is a layer below"
    EMBEDDING_HIGH = "the embedding has the head's rate: it is the lowest layer"
    NORM = "the norm behind the last block belongs to the head, and has its rate"
    INNER_NORMS = "the norms within the blocks have the head's rate: only the one behind the last block has"
    DIVIDED = "each rate is divided by `decay`: multiply"
    LINEAR = "the rates fall by equal steps: each is `decay` times the one above"
    STEP_TWICE = "`decay` acts twice from one layer to the next"


class LowRank(Mistake):
    NOT_FROZEN = "the layer that was handed in still learns: freeze it"
    CHANGE_FROZEN = "`A` or `B` does not learn: only the layer that was handed in is frozen"
    B_START = "`B` does not start as zeros, so that the outputs are others before anything is learnt"
    STARTS_TURNED = "the starts are turned round: `A` starts as random numbers, and `B` as zeros"
    A_START = "`A` starts as zeros, or with equal numbers: then no gradient tells its rows apart"
    A_FIXED = "`A` starts with the same numbers in each layer: draw them"
    LINEAR_COPIED = "`linear` is a copy: keep the layer that was handed in"
    NO_LINEAR = "the frozen layer's output is missing: the change is added to it"
    NO_SCALE = "the change is not multiplied by `alpha / rank`"
    ALPHA_ONLY = "the change is multiplied by `alpha`, and not divided by `rank`"
    RANK_ONLY = "the change is divided by `rank`, and not multiplied by `alpha`"
    ROOT = "the change is divided by the root of `rank`: here it is `rank` itself"
    UPSIDE_DOWN = "the change is multiplied by `rank / alpha`: it is `alpha / rank`"
    SUBTRACTED = "the change is subtracted: add it"
    MERGED_BARE = "`merged()` gives the frozen layer without the change"
    MERGED_NO_BIAS = "`merged()` has another bias than the frozen layer, or none: it is the same"
    MERGED_SCALE = "`merged()` leaves out the factor `alpha / rank`"
    MERGED_IN_PLACE = (
        "`merged()` changes the layer itself, or shares parameters with it, so that what becomes of one shows in the "
        "other: make a new one"
    )
    MERGED_NO_LAYER = "`merged()` returns no `nn.Linear`"
    BIAS_MADE_UP = "a layer without a bias has one after `merged()`"


class contaminated(Mistake):
    NO_LIST = "what is returned is no list of indices"
    ORDER = "the indices are not in ascending order"
    ABOVE = "a text with exactly `share` is left out: at least `share` is asked for"
    ANY = "one n-gram that was read is enough: at least `share` of them must be"
    ALL = "a text is found only if all its n-grams were read: `share` of them is enough"
    SHARE_FIXED = "`share` is not used"
    OF_TOKENS = "the share is one of the text's tokens: it is one of its n-grams, of which there are fewer"
    ROUNDED = "`share` of the n-grams is cut to a whole number, so that fewer are enough: compare with it as it is"
    TOTAL_SHORT = "the share is one of `len(text) - n`: a text has one n-gram more"
    N_FIXED = "`n` is not used"
    DEFAULTS = "the default of `n` or of `share` is not the one in the signature"
    WORDS = "single tokens are looked up: n of them in a row make an n-gram"
    UNORDERED = "the order within an n-gram is lost: n tokens in a row, in their order"
    ACROSS = "n-grams reach from one text into the next: each text by itself"
    TURNED_ROUND = "the share is that of what was read: count the n-grams of the tested text"
    DISTINCT = "an n-gram that occurs in a text twice is counted once: every place counts"
    LAST_LOST = "the last n-gram of each text is left out"
    LAST_READ_LOST = "the last n-gram of each text read is left out, but not of the texts tested"
    LAST_TESTED_LOST = "the last n-gram of each text tested is left out, but not of the texts read"
    RAGGED = "the shorter runs at the end of a text count too: an n-gram has n tokens"
    SHORT = "a text shorter than n is found: it has no n-gram that could have been read"
    ONE_SOURCE = "the n-grams have to come from a single text: they may come from several"
    WHOLE = "only whole texts are compared"
    JOINED = "n-grams are compared as joined text, in which different ones may be the same: keep the tokens apart"
    STRIDE = "the n-grams are cut one behind the other: one begins at every token"
    SLOW = "the work grows with the number of pairs of texts: keep what was read in a set, and look each n-gram up"


breaks(Rule.UNCHANGED, pack.ROWS_CHANGED)
breaks(Rule.START, LowRank.B_START, LowRank.STARTS_TURNED, LowRank.A_START)
breaks(Rule.EFFORT, contaminated.SLOW)
