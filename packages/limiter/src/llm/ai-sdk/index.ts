export {
  limitEmbeddingModel,
  limitLanguageModel,
  type AiSdkCall,
  type AiSdkModel,
  type LimitedEmbeddingModel,
  type LimitedLanguageModel,
} from "./limit-model.ts";
