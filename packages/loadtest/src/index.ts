export const ENGINE_NAME = "zae-limiter";
