"""The mistakes that chapter 09's checks know: each has a name that stays, and the sentence that a student reads."""

from autograder.mistakes import Mistake, breaks
from autograder.rules import Rule


class clones(Mistake):
    NOT_A_MODULE_LIST = "the copies are not in an `nn.ModuleList`: torch finds parameters only in its own lists"
    COUNT = "there are more or fewer copies than were asked for"
    SHARED = "the copies share their weights: each needs weights of its own"
    ORIGINAL_AMONG_THEM = "one of the copies is the original itself: it stays outside"
    OTHER_WEIGHTS = "the copies do not start with the weights of the original: copy it, do not make new ones"
    NOT_WHOLE = "a copy lacks something that the module carries besides its weights: copy the module whole"


class Embedder(Mistake):
    TABLE = "`embedding` is no `nn.Embedding` with a row for each token and a column for each feature"
    PAD_ROW_START = (
        "the pad row does not start as zeros: `padding_idx` sees to that, until you draw new numbers afterwards"
    )
    PAD_ROW_LEARNS = "the pad row gets a gradient, so that it does not stay zero: pass `padding_idx=pad_id`"
    NOT_SCALED = "the vectors are not scaled: multiply by √d"
    DIVIDED = "the vectors are divided by √d: multiply"
    TIMES_D = "the vectors are multiplied by d, not by √d"
    ROOT_OF_V = "the vectors are multiplied by √V, not by √d"
    ROOT_OF_N = "the vectors are multiplied by the root of the sequence's length, not by √d"
    OWN_NUMBERS = "the table starts with numbers of size 1, as `nn.Embedding` draws them: draw new ones, of size 1/√d"
    SPREAD = "the table starts with another standard deviation than 1/√d"
    ONE_OVER_D = "the table starts with a standard deviation of 1/d, not 1/√d"
    NOT_AROUND_0 = "the numbers of the table do not start around 0"
    NOT_NORMAL = "the numbers of the table are not drawn from a normal distribution"


class target_mask(Mistake):
    NOT_BOOL = "the mask is not boolean"
    NO_BATCH = "the dimension of the batch is missing: each sentence has its own padding"
    FUTURE_SEEN = "the future is not hidden: a position may not look at later ones"
    PADDING_SEEN = "padding is not hidden: this is the causal mask alone"
    ROWS_HIDDEN = "padding hides a row (who looks), but it should hide a column (what is looked at)"
    UPSIDE_DOWN = "the causal part is upside down: a position may look at itself and at what is before it"
    NO_DIAGONAL = "a position may not look at itself: keep the diagonal"
    ONE_AHEAD = "a position may look one step ahead: the diagonal is one too high"
    INVERTED = "the mask is turned round: True means that a position may be looked at"
    PADDING_INVERTED = "the padding's part is turned round, so that only padding may be looked at"
    PAD_ID = "`pad_id` is taken to be 0: use the argument"


class DecoderLayer(Mistake):
    SHARED = "two parts are one and the same module: each needs weights of its own"
    HIDDEN = "`hidden` is not passed on"
    HEADS = "`heads` is not passed on: the attention has one head"
    WEIGHTS_TOO = "the attention's weights are returned, too: return x alone"
    MASK_INVERTED = "`mask` is turned round on its way to the attention"
    NO_NORM_1 = "`norm_1` is missing, or what the attention looks at is not normalized"
    NO_NORM_2 = "`norm_2` is missing"
    NO_NORM_3 = "`norm_3` is missing"
    POST_NORM = "this is post-norm, where pre-norm is asked: the norm belongs before each sublayer"
    NORMED_ADDED_1 = "around the self-attention norm(x) is added, not x itself: the residual path goes round the norm"
    NORMED_ADDED_2 = "around the second sublayer norm(x) is added, not x itself: the residual path goes round the norm"
    NORMED_ADDED_3 = (
        "around the feed-forward network norm(x) is added, not x itself: the residual path goes round the norm"
    )
    NORMED_ADDED = "around each sublayer norm(x) is added, not x itself: the residual path goes round the norm"
    NO_RESIDUALS = "all three residual connections are missing: what a sublayer returns is added to x"
    ATTENTION_ALONE = "the residual connection around the self-attention is missing"
    NETWORK_ALONE = "the residual connection around the feed-forward network is missing"
    NO_ATTENTION = (
        "the sum lacks what the self-attention found: it is missing, or the second sublayer is added to the first `x`"
    )
    NO_NETWORK = "the feed-forward network is missing"
    NO_RELU = "the feed-forward network has no ReLU"
    NORM_1_TWICE = "`norm_1` is used twice, and `norm_2` never"
    OLD_QUERIES = "the attention to the source asks with what `norm_1` made: its queries are `norm_2` of the sum so far"
    NORM_2_FOR_3 = "`norm_2` takes the place of `norm_3`"
    LAST_NORM = "a norm follows the last addition: a pre-norm layer ends with the sum"
    MASKS_EXCHANGED = "the two masks are exchanged"
    FUTURE_SEEN = "the self-attention does not get `mask`: it sees the future"
    SOURCE_UNMASKED = "the attention to the source does not get `memory_mask`"
    UNMASKED = "neither attention gets its mask"
    SOURCE_GETS_MASK = "the attention to the source gets `mask`: it needs `memory_mask`"
    TARGET_GETS_MEMORY_MASK = "the self-attention gets `memory_mask`: it needs `mask`"
    MEMORY_MASK_INVERTED = "`memory_mask` is turned round on its way to the attention"
    LOOKS_AT_MEMORY = "the self-attention looks at the memory"
    LOOKS_AGAIN = "the second attention looks at the target again: its keys and values are the memory"
    KEYS_FROM_TARGET = "the second attention's keys come from the target: they are the memory"
    MEMORY_NORMED = "the memory is normalized again: the encoder has done it"
    FIRST_MEMORY = "the first sequence's memory is used for the whole batch"
    NO_SOURCE = "the attention to the source is missing"
    SOURCE_FIRST = "the sublayers come in the wrong order: self-attention, source, feed-forward network"
    NETWORK_BEFORE_SOURCE = "the feed-forward network comes before the attention to the source: it is the last sublayer"
    SOURCE_READS_INPUT = "the attention to the source reads the layer's input, not the sum before it"
    SOURCE_SUBTRACTED = "the residual around the attention to the source is subtracted"
    SOURCE_ALONE = "the residual connection around the attention to the source is missing"
    ATTENTIONS_EXCHANGED = "`self_attention` and `source_attention` are exchanged"
    ATTENTION_TWICE = "`self_attention` is used for the source too"
    MEMORY_CUT_OFF = "no gradient reaches the memory, so that the encoder would learn nothing"
    NOT_DROPPED = "a sublayer's output is not dropped before it is added"
    DROPOUT_ON_SUM = "dropout acts on the sum: it should act on a sublayer's output before it is added"
    DROPOUT_NOT_INSIDE = "inside a sublayer nothing is dropped: pass `dropout` on to its parts"
    DROPPED_ELSEWHERE = (
        "something is dropped twice, or elsewhere: dropout acts inside each sublayer and, once, on its output"
    )
    DROPOUT_NOT_PASSED = "something is dropped even where `dropout` is 0: pass the argument on to each part that drops"
    DEFAULT = "without the argument `dropout` another share is dropped than the docstring says"


class Decoder(Mistake):
    LAYERS_HIDDEN = "`layers` is missing, or torch cannot see into it: use `clones`, which makes an `nn.ModuleList`"
    OTHER_LAYERS = "the layers are those of the other stack"
    DEPTH = "there are not `depth` layers with weights of their own"
    HEADS = "`heads` is not passed on to the layers"
    PAD_ID = "`pad_id` is not passed on to the Embedder"
    NO_POSITIONS = "no positions are added: use PositionEncoding"
    NOT_SCALED = "the embeddings are not scaled: use the Embedder"
    EMBEDDED_TWICE = (
        "the embeddings count twice: the Embedder has scaled them, and PositionEncoding returns the sum with the "
        "positions, not the positions alone"
    )
    POSITIONS_SCALED = "the positions are scaled by √d too: only the embeddings are"
    LAYERS_UNUSED = "the layers are not used, or what a layer returns does not become the next one's `x`"
    FIRST_LAYER_ONLY = "only the first layer is used"
    LAST_LAYER_ONLY = "only the last layer is used, or each layer reads the embeddings"
    FIRST_LAYER_TWICE = "the first layer is used again and again, the others never"
    REVERSED = "the layers run in reverse"
    RESIDUAL_TWICE = "what a layer returns is added to x: its residual connections are inside it"
    NO_MEMORY = "the layers get x in place of the memory, so that nothing of the source reaches them"
    NO_LAST_NORM = "the final norm is missing: pre-norm layers end with a sum, so the stack needs one last norm"
    NORM_EACH_TIME = "the norm acts after every layer: it comes once, after the last"
    NORM_FIRST = "the norm acts before the layers: it comes once, after the last"
    MASKS_EXCHANGED = "the layers get `mask` where `memory_mask` belongs: their order is x, memory, memory_mask, mask"
    FUTURE_SEEN = "the layers do not get `mask`"
    SOURCE_UNMASKED = "the layers do not get `memory_mask`"
    MEMORY_NORMED = "the memory goes through the decoder's norm: it is normed already"
    LAYERS_DROP_NOTHING = "`dropout` is not passed on to the layers"
    SUM_NOT_DROPPED = "the sum of embedding and position is not dropped: pass `dropout` to PositionEncoding"
    SUM_DROPPED_TWICE = "the sum of embedding and position is dropped twice: PositionEncoding does it already"


class Translator(Mistake):
    NOT_TIED = (
        "`output` has a weight of its own: it should be the decoder's embedding's, one and the same parameter (assign "
        "it, do not copy its numbers)"
    )
    TIED_TO_SOURCE = "`output` scores another number of tokens than the target has: its weight is the decoder's table"
    BIAS = "`output` has a bias"
    VOCABULARIES = "the vocabularies are exchanged: `source_vocab` is the encoder's, `target_vocab` the decoder's"
    HEADS_AND_DEPTH = (
        "heads and depth are exchanged: the stacks take depth before heads, Translator takes heads before depth"
    )
    DEPTH = "encoder or decoder has another number of layers than `depth`"
    DROPOUT = "two passes in training give the same: `dropout` is not passed on"
    ENCODER_SEES_PADDING = "the encoder does not get the source mask, so that words look at padding"
    ENCODER_IS_CAUSAL = "the encoder's mask is causal: the source is there as a whole"
    MEMORY_UNMASKED = "the decoder does not get the source mask, so that it looks at the source's padding"
    FUTURE_SEEN = "the decoder's target mask is not causal, so that it looks into the future"
    PADDING_SEEN = "the decoder's target mask does not hide padding"
    PAD_ID = "`pad_id` is taken to be 0: use the argument"
    ENCODES_AGAIN = "`decode` encodes the source itself: use the memory that it is given"
    VECTORS = "the decoder's vectors are returned: send them through `output`"
    PROBABILITIES = "probabilities are returned, not logits: the loss takes the log-softmax itself"
    LOG_PROBABILITIES = "log-probabilities are returned, not logits: the loss takes the log-softmax itself"
    SCALED = "the logits are multiplied by √d: only what goes in is scaled"
    LAST_ONLY = "only the last position's logits are returned: every position predicts"
    CUT_SHORT = "a position is cut off: the caller decides what to feed"
    PAD_LOGIT_LOWEST = "the logits of padding are made the lowest: they should be 0, as a zero row gives"
    ZEROS_ELSEWHERE = (
        "a position or a sentence is overwritten with zeros: padding's logits are a column, in the last dimension"
    )
    PAD_ROW_START = (
        "the pad row of an embedding does not start as zeros: tie `output` to the embedding, not the embedding to "
        "`output`, and when you draw new matrices, leave the embeddings out"
    )
    TABLE_START = "an embedding starts with another spread than the Embedder gives it: leave it as it was drawn there"
    LAYERS_ALIKE = "the layers start alike, as clones do: draw each matrix anew"
    OTHER_START = "the matrices of the layers do not start as `nn.init.xavier_uniform_` draws them"
    PAD_ROW_LEARNS = (
        "the pad row of an embedding gets a gradient, so that it does not stay zero: `padding_idx` guards the lookup "
        "only, and the tied `output` sends one too"
    )
    PAD_ROW_LEARNS_IN_COPY = (
        "in a copy of the model the pad row learns: a hook on the parameter is lost in a copy; make the logits of "
        "padding a constant"
    )


class check_leaks(Mistake):
    REJECTS_RIGHT = (
        "your test rejects a model that leaks nothing: ask for no more than that, and leave room for rounding"
    )
    CRASHES = "your test stops with another error than an AssertionError, which alone counts as a verdict"
    RETURNS = "your test returns its verdict: a test speaks by `assert`"
    ACCEPTS_LEAK = "your test accepts a model that leaks"
    ACCEPTS_ALL = "your test accepts every model that leaks"
    # A test's worst blind spot is named, of equal ones the first.
    MISSES_FUTURE = "your test lets models pass that look at later target tokens"
    MISSES_PADDING = "your test lets models pass in which padding moves the logits of real tokens"
    MISSES_BATCH = "your test lets models pass in which the sentences of a batch touch each other"


breaks(Rule.START, Embedder.PAD_ROW_START, Embedder.ONE_OVER_D, Embedder.NOT_AROUND_0)
breaks(Rule.START, Translator.PAD_ROW_START, Translator.TABLE_START, Translator.OTHER_START)
