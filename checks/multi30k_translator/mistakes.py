"""The mistakes that chapter 10's checks know: each has a name that stays, and the sentence that a student reads."""

from autograder.mistakes import Mistake, breaks
from autograder.rules import Rule


class label_smoothed_loss(Mistake):
    NO_SMOOTHING = "`smoothing` is not used"
    NO_MINUS = "the minus is missing"
    NO_LOG = "probabilities are averaged, without a log"
    SUM = "this is a sum: divide it by the number of real tokens"
    BY_SENTENCES = "the sum is divided by the number of sentences, not of real tokens"
    MEAN_OF_MEANS = "a mean is taken for each sentence, then the mean of those: every real token counts alike"
    PADDING_ZEROED = "padding is zeroed but still counted: divide by the number of real tokens"
    PADDING = "padding counts: leave the positions out whose target is `pad_id`"
    PAD_IS_1 = "`pad_id` is taken to be 1: use the argument"
    TOO_LITTLE = "the right token gets 1 - smoothing alone: its own share of what is spread is lost"
    TOO_MUCH = "the right token keeps the weight 1, so that the target sums to more than 1"
    SHARE_TWICE = "the right token gets its share of what is spread twice: the mean over all tokens holds it already"
    WRONG_TOKENS_ONLY = "smoothing is divided by V - 1 and goes to the wrong tokens only"
    NOT_TO_PADDING = "smoothing is divided by V - 2: padding is left out of the share, too"
    SUM_OVER_TOKENS = "every token gets the whole of `smoothing`, not its share"
    EXCHANGED = "`smoothing` and `1 - smoothing` are exchanged"
    OVER_POSITIONS = "the softmax runs over the positions: it should run over the vocabulary, the last dimension"
    NOT_STABLE = "large logits make the loss infinite: `log_softmax`, not the log of a softmax or of a sum of `exp`"
    NO_REAL_TOKEN = "nothing but padding divides 0 by 0: divide by at least 1"
    NO_SOFTMAX = "the logits are taken for log-probabilities: `log_softmax` makes them such"
    KL = "this is the KL divergence, from which the entropy of the targets is subtracted: take the cross-entropy"
    LIBRARY = "a ready-made loss does the work: write this one by hand, from `log_softmax`"


class noam_factor(Mistake):
    LARGER = "the larger of the two is taken: before the peak and after it the smaller one counts"
    TIMES_ROOT = "√dim multiplies: it has to divide"
    NO_DIM = "`dim` is not used"
    BY_DIM = "it is divided by dim, not by √dim"
    DIM_FIXED = "another number stands where `dim` should"
    NOT_STRAIGHT = "the warm-up is no straight line that meets the other curve at step `warmup`"
    BY_ROOT_WARMUP = "the warm-up divides by √warmup alone, so that it ends before step `warmup`"
    EXPONENTS = "the exponents are exchanged: −1/2 and −3/2 belong to `step` and to `warmup`, in this order"
    NO_WARMUP = "there is no warm-up: it should grow up to step `warmup`"
    ONLY_WARMUP = "it only ever grows: after the warm-up it should fall like 1/√step"
    CONSTANT = "after the warm-up it stays the same: it should fall like 1/√step"
    BY_STEP = "it falls like 1/step: it should fall like 1/√step"
    ONE_STEP_ON = "1 is added to `step`, which already begins with 1"
    SCALED = "it is scaled to be 1 at its highest: the formula is not"


class decoding(Mistake):
    """Of `greedy_decode` and `beam_search`."""

    NOT_LISTS = "what is returned is no list of lists of numbers, one for each sentence"
    EOS_KEPT = "`eos_id` is still there: cut each translation before its first one"
    BOS_KEPT = "`bos_id` is still there: leave the first token out"
    EXCHANGED = "`decode` gets its arguments in another order: it takes `(target, memory, source)`"
    BOS_IGNORED = "the targets do not begin with `bos_id`: use the argument"
    AFTER_EOS = "what comes after `eos_id` stays: cut there, do not just take it out"
    ONE_TOO_FEW = "one step too few: up to `max_len` tokens are written"
    ONE_TOO_MANY = "one token too many: at most `max_len`"
    FIRST_ENDED = "it stops when the first sentence, or hypothesis, has ended: go on until all have"
    LEAST_LIKELY = "the least likely is taken: the highest counts"
    FIRST_POSITION = "the scores of the first position are read: those of the last one belong to the next token"
    NEWEST_ONLY = "only the newest token is given to `decode`: it needs all of them"
    ENCODES_AGAIN = "`encode` is called again: once is enough, the source does not change"
    GRAPH = "a graph is recorded, which costs memory: decode inside `torch.no_grad()`"
    TRAINING = (
        "the model is put into training mode, where its dropout changes what it says: it comes in evaluation mode, and "
        "translates so"
    )
    ONE_BY_ONE = "the sentences are decoded one by one: decode all together, with one call for each step"
    NEVER_STOPS = "it goes on after every translation has ended: keep a note of which have, and stop once all have"


class beam_search(Mistake):
    ALL_HYPOTHESES = "all hypotheses are returned: only the best one of each sentence is wanted"
    COPIES = (
        "this is what greedy decoding finds: at the start all hypotheses of a sentence but one need the sum -inf, or "
        "they stay copies of each other"
    )
    NO_PARENTS = "the tokens are not those of the parents: a continuation belongs behind the hypothesis it continues"
    SUMS_FORGOTTEN = "the log-probabilities of earlier tokens are forgotten: add them up"
    KEEPS_PLACE = (
        "a hypothesis that has ended keeps its place whatever comes: that is another published convention; here it "
        "competes with the others, as `beam_step` lets it"
    )
    GIVES_PLACE = (
        "a hypothesis that has ended is set aside and another takes its place: that is another published convention; "
        "here it stays and competes, as `beam_step` lets it"
    )
    ENDED_LOST = "hypotheses that have ended are lost: they stay, and the best may be one of them"
    PAST_EOS = "a hypothesis goes on past its `eos_id`, and the tokens behind it are counted: it has ended there"
    ENDED_STAYS = (
        "which have ended is not taken from the parents: when a hypothesis changes its place, that it has ended goes "
        "with it, as its tokens do"
    )
    LEADER_ENDED = "it stops when the best hypothesis so far has ended: go on until all of the beam have"
    PREFERS_ENDED = (
        "a hypothesis that has ended is preferred to all that have not, which are left out or given too small a "
        "length: the best counts, ended or not"
    )
    PROBABILITIES = "probabilities are added up: take their logarithms"
    LOGITS = "logits are added up, which no softmax has made log-probabilities"
    NO_PENALTY = "`length_penalty` changes nothing: it is not used, or every hypothesis is given the same length"
    PENALTY_FIXED = (
        "the penalty is the same for each `length_penalty`: use the argument, as the power of the whole bracket, "
        "(5 + length) / 6"
    )
    OTHER_DEFAULT = "the default of `length_penalty` is not the one in the signature"
    MULTIPLIED = "the sum is multiplied by the penalty: divide"
    BRACKETS = "5 + length / 6 is taken, where the formula has (5 + length) / 6"
    OTHER_PENALTY = "the sum is divided by length ** length_penalty, which is another penalty than the docstring's"
    BY_LENGTH = "the sum is divided by the length, whatever `length_penalty`"
    EOS_NOT_COUNTED = "`eos_id` is not counted in the length"
    BOS_COUNTED = "`bos_id` is counted in the length: count the tokens behind it"
    END_ALWAYS_COUNTED = "1 is added to every length, for `bos_id` or for an `eos_id` that has not come everywhere"
    MIXED_UP = (
        "the sentences of a batch are mixed up: each has its own rows and its own parents (where rows are copied, "
        "`repeat_interleave` keeps those of a sentence together, `repeat` does not)"
    )


class beam_step(Mistake):
    NOT_THREE = "what is returned are not three tensors: sums, parents and tokens"
    NOT_INTEGERS = "parents or tokens are no integers: `//`, not `/`"
    EXCHANGED = "parents and tokens are exchanged"
    GOES_ON = "a hypothesis that has ended goes on past its end: it has one continuation, `eos_id`"
    PAID_OR_LOST = (
        "the `eos_id` of a hypothesis that has ended is paid for, or it is lost itself: its end costs nothing"
    )
    ANY_TOKEN = "a hypothesis that has ended may go on with any token at no cost: with `eos_id` alone"
    END_FREE = "`eos_id` costs nothing for any hypothesis: only for one that has ended"
    BY_K = "a place in the flattened continuations is divided by k: V continuations belong to each parent"
    PLACES = "the parents are places in the flattened continuations: divide by V"
    ROWS = "the parents are rows of the whole batch: in each sentence count from 0 to k - 1"
    SUMS_FORGOTTEN = "the sums so far are forgotten: add them"
    OWN_BEST = "each hypothesis goes on with its own best token: all continuations of a sentence compete"
    PROBABILITIES = "probabilities are added: add the log-probabilities as they are"
    MULTIPLIED = "the sums are multiplied by the log-probabilities: add"
    WORST = "the worst continuations are kept: keep those with the highest sums"
    KEEPS_PLACE = (
        "a hypothesis that has ended keeps its place whatever comes: that is another published convention; here it "
        "competes like every continuation"
    )
    WHOLE_BATCH = "the sentences of the batch compete with one another: each has a beam of its own"
    EOS_IS_3 = "`eos_id` is taken to be 3: use the argument"


class cached_attention(Mistake):
    NO_PAIR = "there is no pair where one should be: the output and the new cache, which is keys and values"
    NOT_GROWN = "the cache does not grow: it should hold the keys and values of all positions so far"
    NO_HEADS = "the cache has no dimension for the heads: keep keys and values as they are once split"
    JOINED_ELSEWHERE = (
        "old and new are not joined along the positions: `torch.cat`, and `dim=2` once the heads are split"
    )
    ONE_JOINED = "there are more keys than values, or fewer: join the new ones of both to those of the cache"
    NEWEST_FIRST = "the newest comes first in the cache: join it behind the older ones"
    EXCHANGED = "keys and values are exchanged in the cache"
    QUERY_BY_WK = "the query is made with `Wk`"
    VALUES_BY_WK = "keys are taken where the values should be, which `Wv` makes"
    NO_WO = "`WO` is missing"
    NOT_SCALED = "the scores are not divided by the root of a head's features"
    ALL_FEATURES = "the scores are divided by √d, the root of all features: in a head there are fewer"
    NOT_ITSELF = "the new position does not see itself: join its key and value to the cache first"
    ITSELF_ALONE = "the new position sees itself alone: join its key and value to the cache, then compute the weights"
    FIRST_ALONE = "the new position sees the first one alone: no causal mask, what is later is not there yet"
    MASK_UNUSED = "the mask is not used"
    MASK_TURNED = "the mask is turned round: True means that a position may be attended to"
    MASK_BY_HEAD = (
        "each sentence's mask goes to one of the heads: `mask.unsqueeze(1)` gives `(B, 1, t)` a place for them"
    )
    NO_DROPOUT = "`attention.dropout` is not used on the weights"
    DROPOUT_ELSEWHERE = "dropout acts on the output, the values or the features, not on the weights"
    CACHE_CUT_OFF = "no gradient reaches the earlier positions through the cache: no `.detach()`, no `.data`"


class corpus_bleu(Mistake):
    FRACTION = "a fraction between 0 and 1: multiply by 100"
    ONE_BAG = "n-grams of all lengths are counted in one bag: each length has a precision of its own"
    ADD_ONE_TO_ALL = "1 is added to all counts, those of single tokens too: no smoothing here"
    ADD_ONE = "1 is added to the counts: no smoothing here"
    UP_TO_3 = "n-grams go up to 3: up to 4"
    UP_TO_5 = "n-grams go up to 5: up to 4"
    ARITHMETIC = "the arithmetic mean of the four precisions is taken: take the geometric one"
    NO_ROOT = "the four precisions are multiplied, and the fourth root is missing"
    PLACE_BY_PLACE = "only single tokens are compared, or place by place: n goes from 1 to 4"
    RECALL = "this is recall, not precision: divide by the number of n-grams of the hypotheses"
    RATIO = "the brevity penalty is the ratio of the lengths: it is an exponential"
    NO_BREVITY = "nothing punishes hypotheses that are too short: the brevity penalty is missing, or turned round"
    ABOVE_1 = "the brevity penalty exceeds 1 when the hypotheses are longer: it is at most 1"
    BREVITY_BY_SENTENCE = "there is a brevity penalty for each sentence: compare the lengths of the whole corpus"
    SMALL_FOR_ZERO = "a precision of 0 is replaced by a small number: then BLEU is 0"
    BY_SENTENCE = "a mean of the BLEUs of the sentences: count the n-grams of the whole corpus, then divide"
    PRECISIONS_BY_SENTENCE = (
        "the precisions of the sentences are averaged: count the n-grams of the whole corpus, then divide"
    )
    POOLED = "hypotheses are compared with the references of others: compare each with its own"
    JOINED = "the sentences are joined into one, so that n-grams cross their borders"
    NOT_CLIPPED = "matches are not clipped: an n-gram counts at most as often as the reference has it"
    SETS = "each different n-gram counts once: count how often it occurs"
    SHORT_SKIPPED = "pairs whose hypothesis is short, or empty, are skipped: they count like the others"
    NEGATIVE = "a hypothesis shorter than n takes n-grams away from the total: it has none, so it adds 0"
    CHARACTERS = "tokens are joined without a space, so that other tokens of the same letters count as matches"
    LOWER_CASE = "tokens are turned to lower case: leave them as they are"
    CHANGED = "the lists of tokens are changed: work on copies"


class learn_merges(Mistake):
    NOT_A_LIST = "what is returned is no list of pairs of pieces"
    TIES = (
        "a tie does not go to the pair that is first in sorted order, but to the one that was met first, or to another"
    )
    TIES_JOINED = "ties are settled by the joined pieces: compare the pairs"
    NOT_GROWN = "pieces never grow: count again after each merge, with the merged piece"
    NOT_JOINED = "the same pair is merged again and again: keep what `join_pair` returns, and count in that"
    RAREST = "the rarest pair is merged: merge the commonest"
    MARK = "a piece holds what no word has, such as a mark for a word's end: start from each word's characters alone"
    PIECES = "merged pieces are returned: return the pairs"
    TOO_FEW = "one merge too few: `count` of them"
    TOO_MANY = "one merge too many: `count` of them"
    WORD_ONCE = "a word counts once, however often it occurs: its pairs count that often"
    PAIR_ONCE = "a pair counts once in a word, even if it stands there twice"
    AS_TEXT = "pieces are joined as text, so that the end of a longer piece is taken for the pair: compare whole pieces"
    LEAVES_SINGLE = "pairs that occur only once are left: go on until nothing is left to merge"
    LOWER_CASE = "words are turned to lower case: leave them as they are"
    CHANGED = "the dict of words is changed: work on a copy"


breaks(Rule.NO_GRAPH, decoding.GRAPH)
breaks(Rule.EFFORT, decoding.ENCODES_AGAIN)
breaks(Rule.DROPOUT, cached_attention.NO_DROPOUT, cached_attention.DROPOUT_ELSEWHERE)
breaks(Rule.UNCHANGED, corpus_bleu.CHANGED, learn_merges.CHANGED)
